"""Functions of ``mindspore.ops`` that limit values (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.slopes import limited
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
    if not isinstance(x, torch.Tensor):
        refuse(TypeError, f"For 'clip_by_value', 'x' must be a tensor, or a list or tuple of them, but got {x!r}")
    return wrap(limited(x, clip_value_min, clip_value_max))


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Return a tensor, or several tensors, scaled so that the norm of all is at most ``max_norm``.

    The norm is ``sum(x ** norm_type) ** (1 / norm_type)``, also for an odd ``norm_type``.

    Raises:
        RuntimeError: the norm is not finite, with ``error_if_nonfinite``.
    """
    parts = list(x) if isinstance(x, list | tuple) else [x]
    norm = _norm(parts, norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(norm)):
        refuse(RuntimeError, f"For clip_by_norm, the norm of order {norm_type} is {float(norm)}, should be finite")
    factor = max_norm / (norm + 1e-6)
    if not bool(factor < 1):
        return x
    scaled = tuple(wrap(part * factor) for part in parts)
    return scaled if isinstance(x, list | tuple) else scaled[0]


def _norm(parts: list[Any], norm_type: float) -> Any:
    if not parts:
        refuse(ValueError, "For 'clip_by_norm', there should be at least one tensor, but got 0")
    if norm_type == float("inf"):
        return torch.stack([part.abs().max() for part in parts]).max()
    if len({part.dtype for part in parts}) > 1:
        refuse(
            TypeError,
            f"For 'clip_by_norm', all tensors should have one dtype, but got {[each.dtype for each in parts]}",
        )
    norms = [torch.pow(torch.pow(part, norm_type).sum(), 1 / norm_type).to(part.dtype) for part in parts]
    return torch.pow(torch.pow(torch.stack(norms), norm_type).sum(), 1 / norm_type)


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Return a tensor, or a tuple of tensors, scaled to the global norm ``clip_norm`` if their norm is greater.

    Raises:
        TypeError: ``x`` is neither.
        ValueError: there is no tensor, or ``clip_norm`` is not positive; or ``use_norm`` is given, which MindSpore
            refuses too.
    """
    if use_norm is not None:
        refuse(
            ValueError, f"For 'clip_by_global_norm', input 'use_norm' only supports None currently, but got {use_norm}"
        )
    parts = list(x) if isinstance(x, list | tuple) else [x]
    if not all(isinstance(each, torch.Tensor) for each in parts):
        refuse(TypeError, f"For 'clip_by_global_norm', 'x' must be a tensor, or a list or tuple of them, but got {x!r}")
    if not parts:
        refuse(ValueError, "For 'clip_by_global_norm', there should be at least one tensor, but got 0")
    if clip_norm <= 0:
        refuse(ValueError, f"For 'clip_by_global_norm', 'clip_norm' should be above 0, but got {clip_norm}")
    norm = torch.sqrt(torch.stack([torch.sum(torch.square(each.float())) for each in parts]).sum())
    bound = torch.maximum(norm, torch.tensor(float(clip_norm)))
    scaled = tuple(cast(Tensor, wrap((each * clip_norm / bound).to(each.dtype))) for each in parts)
    return scaled if isinstance(x, list | tuple) else scaled[0]
