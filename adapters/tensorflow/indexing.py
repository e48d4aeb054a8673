"""Selects elements of a tensor by an index, in which steps may be negative. Source: TensorFlow 2.21, run eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.errors import checked

_own: Any = torch.Tensor.__getitem__


@checked
def select(value: torch.Tensor, index: Any) -> Any:
    """Return the elements at an index: integers, slices, ``...``, None, masks, and, as in torch, lists of integers.

    Raises:
        InvalidArgumentError: an integer is outside, or there are too many.
        TypeError: the index holds something else.
    """
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, str | float | np.floating):
            raise ArgumentTypeError(
                "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 "
                f"tensors are valid indices, got {part!r}"
            )
    parts = tuple(part._as_tensor() if hasattr(part, "_as_tensor") else part for part in parts)
    if any(_goes_back(part) for part in parts):
        return _select_backwards(value, parts)
    return _own(value, parts if isinstance(index, tuple) else parts[0])


def _goes_back(part: Any) -> bool:
    return isinstance(part, slice) and part.step is not None and int(part.step) < 0


def _select_backwards(value: torch.Tensor, parts: tuple[Any, ...]) -> Any:
    """Reorder each axis with a negative step first: torch refuses such steps."""
    taken = [_axes_taken(part) for part in parts]
    axis, plain = 0, list(parts)
    for place, part in enumerate(parts):
        if _goes_back(part):
            ends = (None if end is None else int(end) for end in (part.start, part.stop, part.step))
            order = range(value.shape[axis])[slice(*ends)]
            value = value.index_select(axis, torch.tensor(list(order), dtype=torch.int64))
            plain[place] = slice(None)
        axis += value.dim() - sum(taken) if part is Ellipsis else taken[place]
    return _own(value, tuple(plain))


def _axes_taken(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    is_mask = getattr(part, "dtype", None) in (torch.bool, np.dtype(bool))
    return int(part.ndim) if is_mask else 1
