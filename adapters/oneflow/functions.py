"""Functions of ``oneflow`` that torch has only as methods, or with other arguments. Signatures of OneFlow 0.9.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np
import torch

from collshim import world
from collshim.errors import ArgumentError, also
from collshim.oneflow.framework import global_tensor
from collshim.oneflow.framework.calls import is_global
from collshim.oneflow.framework.forms import FUNCTIONS
from collshim.oneflow.framework.global_tensor import GlobalTensor
from collshim.oneflow.framework.tensor import Tensor, adopt, adopt_tensor

_METHODS = (
    *("contiguous", "div_", "erfinv_", "expand", "index_add_", "masked_fill_", "repeat", "view", "zero_"),
    *("new_empty", "new_full", "new_ones", "new_zeros"),
)


def _method_as_function(name: str) -> Callable[..., Any]:
    def function(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(adopt(input), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Call ``input.{name}(...)``."
    return function


def _for_any_tensor(of: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return adopt(of(*args, **kwargs))

    return update_wrapper(function, of)


METHODS = {name: _method_as_function(name) for name in _METHODS} | {
    name: _for_any_tensor(function) for name, function in FUNCTIONS.items()
}


def to_global(input: Any, placement: Any = None, sbp: Any = None, **options: Any) -> GlobalTensor:
    """Return the tensor as a global one; see ``Tensor.to_global``.

    Raises:
        AssertionError: ``input`` is not a tensor. ValueError: it is local, and ``placement`` or ``sbp`` is None.
    """
    if not isinstance(input, torch.Tensor):
        text = f"to_global: input is a {type(input).__name__}, should be a tensor{world.place()}"
        raise also(ArgumentError, AssertionError)(text)
    if not is_global(input) and (placement is None or sbp is None):
        text = f"to_global: a local tensor needs a placement and an sbp{world.place()}"
        raise also(ArgumentError, ValueError)(text)
    return global_tensor.to_global(input, placement, sbp, **options)


def to_local(input: Any, *, copy: bool = False) -> Tensor:
    """Return this rank's part of a global tensor; raise an AssertionError for a local one."""
    _require("to_local", input, "global")
    return adopt_tensor(input.to_local())


def local_to_global(
    input: Any, placement: Any = None, sbp: Any = None, *, check_meta: bool = True, copy: bool = False
) -> GlobalTensor:
    """Return the global tensor of the ranks' local ones; raise an AssertionError for a global one."""
    _require("local_to_global", input, "local")
    return to_global(input, placement, sbp, check_meta=check_meta, copy=copy)


def global_to_global(
    input: Any,
    placement: Any = None,
    sbp: Any = None,
    *,
    grad_sbp: Any = None,
    check_meta: bool = False,
    copy: bool = False,
) -> GlobalTensor:
    """Return a global tensor on other ranks or in another layout; raise an AssertionError for a local one."""
    _require("global_to_global", input, "global")
    return to_global(input, placement, sbp, grad_sbp=grad_sbp, check_meta=check_meta)


def _require(function: str, input: Any, kind: str) -> None:
    """Refuse a tensor that is not of the kind, "local" or "global"; AttributeError if it is no tensor."""
    found = "global" if is_global(input) else "local" if isinstance(input, torch.Tensor) else ""
    if found != kind:
        what = f"a {found} tensor" if found else f"a {type(input).__name__}"
        text = f"{function}: input is {what}, should be a {kind} tensor{world.place()}"
        raise also(ArgumentError, AssertionError if found else AttributeError)(text)


def cast(input: torch.Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``input`` converted to ``dtype``."""
    return adopt_tensor(input.to(dtype))


def broadcast_like(x: torch.Tensor, like_tensor: torch.Tensor, broadcast_axes: Any = None) -> Tensor:
    """Expand ``x`` to the shape of ``like_tensor``; new axes come first, or are at ``broadcast_axes``."""
    for axis in sorted(broadcast_axes or ()):
        if x.ndim < like_tensor.ndim:
            x = x.unsqueeze(axis)
    return adopt_tensor(x.expand(like_tensor.shape))


def scatter(input: Any, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Tensor:
    """Return a copy of ``input`` with ``src``, a tensor or a number, at the positions ``index`` along ``dim``.

    ``reduce`` is "add", "multiply", or None to replace the old values.
    """
    more: Any = {"reduce": reduce} if reduce else {}
    return adopt_tensor(torch.scatter(input, dim, index, src, **more))


def matmul(input: Any, other: Any, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Any:
    """Return ``alpha`` times the product of two matrices, or of two batches of shapes (..., m, k) and (..., k, n).

    ``transpose_a`` and ``transpose_b`` first swap the last two dimensions of ``input`` and ``other``.
    """
    first = input.transpose(-2, -1) if transpose_a else input
    product = torch.matmul(first, other.transpose(-2, -1) if transpose_b else other)
    return adopt(product if alpha == 1 else product * alpha)


def convert_oneflow_dtype_to_numpy_dtype(dtype: torch.dtype) -> Any:
    """Return the NumPy type of the same name."""
    return getattr(np, str(dtype).removeprefix("torch.").replace("bool", "bool_"))
