"""Functions of ``mindspore.ops`` that limit values (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.tensor import Tensor, wrap

__all__ = ["clip_by_global_norm", "clip_by_norm", "clip_by_value"]


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Return the values limited to these bounds; for a list or tuple of tensors, a tuple.

    Raises:
        ValueError: both bounds are None.
    """
    if clip_value_min is None and clip_value_max is None:
        text = "For 'clip_by_value', at least one of 'clip_value_min' or 'clip_value_max' must not be None"
        refuse(ValueError, text)
    if isinstance(x, list | tuple):
        return tuple(clip_by_value(each, clip_value_min, clip_value_max) for each in x)
    return wrap(torch.clamp(x, clip_value_min, clip_value_max))


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Return a tensor, or a tuple of several tensors, scaled so that the norm of all is at most ``max_norm``.

    Raises:
        RuntimeError: the norm is not finite, with ``error_if_nonfinite``.
    """
    parts = list(x) if isinstance(x, list | tuple) else [x]
    norm = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(part.float(), norm_type) for part in parts]), norm_type
    )
    if error_if_nonfinite and not bool(torch.isfinite(norm)):
        refuse(RuntimeError, f"For clip_by_norm, the norm of order {norm_type} is {float(norm)}, should be finite")
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    scaled = [wrap((part * factor).to(part.dtype)) for part in parts]
    return tuple(scaled) if isinstance(x, list | tuple) else scaled[0]


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Return a tensor, or a tuple of tensors, scaled to the global norm ``clip_norm`` if their norm is greater.

    Raises:
        ValueError: ``use_norm`` is given, which MindSpore refuses too.
    """
    if use_norm is not None:
        refuse(
            ValueError, f"For 'clip_by_global_norm', input 'use_norm' only supports None currently, but got {use_norm}"
        )
    parts = list(x) if isinstance(x, list | tuple) else [x]
    norm = torch.sqrt(torch.stack([torch.sum(torch.square(each.float())) for each in parts]).sum())
    bound = torch.maximum(norm, torch.tensor(float(clip_norm)))
    scaled = tuple(cast(Tensor, wrap((each * clip_norm / bound).to(each.dtype))) for each in parts)
    return scaled if isinstance(x, list | tuple) else scaled[0]
