"""Indices whose slices have negative steps, which torch refuses (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["places", "turned"]


def turned(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, Any]:
    """Return a tensor and an index without negative steps, which select the same elements in the same order.

    The axes of slices with negative steps are reversed in a copy. An index without such slices is returned unchanged.
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not any(map(_goes_back, parts)):
        return tensor, index
    reversed_axes, chosen, axis = [], [], 0
    for number, part in enumerate(parts):
        if part is Ellipsis:
            axis = tensor.dim() - sum(map(_axes, parts[number + 1 :]))
        elif _goes_back(part):
            reversed_axes.append(axis)
            part = _forward(part, tensor.shape[axis])
        chosen.append(part)
        axis += _axes(part)
    return torch.flip(tensor, reversed_axes), tuple(chosen)


def places(tensor: torch.Tensor, index: Any) -> Any:
    """Return an index for writing: if slices have negative steps, the positions of the elements along each axis."""
    if not any(map(_goes_back, index if isinstance(index, tuple) else (index,))):
        return index
    with torch._C.DisableTorchFunctionSubclass():
        source, chosen = turned(torch.arange(tensor.numel()).reshape(tuple(tensor.shape)), index)
        return torch.unravel_index(source[chosen], tuple(tensor.shape))


def _goes_back(part: Any) -> bool:
    return isinstance(part, slice) and part.step is not None and int(part.step) < 0


def _forward(part: slice, length: int) -> slice:
    """Return the slice of a reversed axis that selects the same elements as ``part`` selects of the axis."""
    start, stop, step = part.indices(length)
    return slice(length - 1 - start, max(length - 1 - stop, 0), -step)


def _axes(part: Any) -> int:
    """Return the number of axes that a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    found = torch.as_tensor(part) if isinstance(part, list) else part
    return found.ndim if str(getattr(found, "dtype", "")).endswith("bool") else 1
