"""``oneflow.utils.global_view``: ``to_global`` and ``to_local`` of tensors, also in dicts, lists and tuples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.oneflow.framework.global_tensor import GlobalTensor

__all__ = ["to_global", "to_local"]


def to_global(
    input: Any, placement: Any = None, sbp: Any = None, warn_on_non_tensor_leaf: bool = True, **kwargs: Any
) -> Any:
    """Convert the tensors in ``input`` to global ones.

    Args:
        input: a tensor, or a dict, list or tuple of tensors; other values in it are returned unchanged.
        placement: the ranks.
        sbp: the layout, or a function of ``input`` and a tensor that returns it.
        warn_on_non_tensor_leaf: whether to warn of values that are not tensors.
        kwargs: further arguments of ``Tensor.to_global``.
    """

    def make(tensor: Any) -> Any:
        layout = sbp(input, tensor) if callable(sbp) and not hasattr(sbp, "layout") else sbp
        return tensor.to_global(placement, layout, **kwargs)

    return _each(input, make, warn_on_non_tensor_leaf)


def to_local(input: Any, *, copy: bool = False) -> Any:
    """Convert the global tensors in ``input`` to this rank's parts."""
    return _each(input, lambda tensor: tensor.to_local() if isinstance(tensor, GlobalTensor) else tensor, True)


def _each(value: Any, make: Callable[[Any], Any], warns: bool) -> Any:
    if isinstance(value, torch.Tensor):
        return make(value)
    if isinstance(value, dict):
        return {key: _each(entry, make, warns) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_each(entry, make, warns) for entry in value])
    if warns:
        warnings.warn(f"Non-Tensor type: {type(value)} encountered, it will remain the same.", stacklevel=3)
    return value


__getattr__ = saying(__name__)
