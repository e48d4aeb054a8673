"""Reductions, sorting and linear algebra (source: MegEngine 1.13.0, ``megengine.functional.math``)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.megengine.core.tensor import array_method, slopes
from collshim.megengine.core.tensor.values import Value, axes_of, floating, operands, require, value_of
from collshim.megengine.tensor import computes

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "dot",
    "isinf",
    "isnan",
    "matinv",
    "matmul",
    "max",
    "mean",
    "min",
    "norm",
    "normalize",
    "prod",
    "sign",
    "sort",
    "std",
    "sum",
    "svd",
    "topk",
    "var",
]

sum = computes(array_method.sum)
prod = computes(array_method.prod)
mean = computes(array_method.mean)
var = computes(array_method.var)
std = computes(array_method.std)
min = computes(array_method.min)
max = computes(array_method.max)


@computes
def isnan(inp: Any) -> Value:
    """Return for each element whether it is NaN."""
    return torch.isnan(value_of(inp))


@computes
def isinf(inp: Any) -> Value:
    """Return for each element whether it is infinite."""
    return torch.isinf(value_of(inp))


@computes
def sign(x: Any) -> Value:
    """Return -1, 0 or 1 for each element, in the dtype of ``x``."""
    return slopes.sign(value_of(x))


@computes
def argmax(inp: Value, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the first greatest element along an axis, as int32; for None, in the flattened tensor."""
    return _found(torch.argmax, inp, axis, keepdims)


@computes
def argmin(inp: Value, axis: int | None = None, keepdims: bool = False) -> Any:
    """Return the index of the first least element along an axis, as int32; for None, in the flattened tensor."""
    return _found(torch.argmin, inp, axis, keepdims)


def _found(search: Any, inp: Value, axis: Any, keepdims: bool) -> Any:
    value = inp.to(torch.uint8) if inp.dtype is torch.bool else inp
    if axis is None:
        require(not keepdims, "can not set axis=None and keepdims=True")
        return search(value.reshape(-1), 0)
    axes = axes_of(value, axis)
    if len(axes) == 1:
        return search(value, axes[0], keepdim=keepdims)
    rest = [number for number in range(value.dim()) if number not in axes]
    found = search(value.permute([*rest, *axes]).flatten(len(rest)), -1)
    kept = [1 if number in axes else length for number, length in enumerate(value.shape)]
    return found.view(kept) if keepdims else found


@computes
def sort(inp: Value, descending: bool = False) -> tuple[Value, Value]:
    """Return the elements sorted along the last axis, and their indices in ``inp``, as int32."""
    found = torch.sort(inp, dim=-1, descending=bool(descending), stable=True)
    return found.values, found.indices


@computes
def argsort(inp: Value, descending: bool = False) -> Value:
    """Return the indices that sort the elements along the last axis, as int32."""
    return torch.argsort(inp, dim=-1, descending=bool(descending), stable=True)


@computes
def topk(inp: Value, k: int, descending: bool = True, kth_only: bool = False, no_sort: bool = False) -> Any:
    """Return the ``k`` greatest elements along the last axis and their indices, or with ``kth_only`` only the k-th.

    If ``descending`` is False, return the least elements. If there are fewer than ``k``, return all.
    """
    count = int(k) if k < inp.shape[-1] else inp.shape[-1]
    found = torch.topk(inp, count, dim=-1, largest=descending, sorted=not no_sort)
    if kth_only:
        whole = torch.topk(inp, count, dim=-1, largest=descending)
        return whole.values[..., -1], whole.indices[..., -1]
    return found.values, found.indices


@computes
def norm(inp: Value, ord: float | None = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of order ``ord``, 2 by default, along ``axis``; it may be None if ``inp`` has one axis."""
    _require_axis(inp, axis)
    require(axis is not None or not keepdims, "can not set axis=None and keepdims=True")
    return _length(floating(inp), 2 if ord is None else float(ord), axes_of(inp, axis), keepdims)


def _length(inp: Value, ord: float, axes: tuple[int, ...], keepdims: bool) -> Value:
    if ord == 1:
        return slopes.abs_of(inp).sum(axes, keepdim=keepdims)
    if ord == float("inf"):
        return slopes.extreme(torch.amax, slopes.abs_of(inp), axes, keepdims)
    length: Value = torch.linalg.vector_norm(inp, ord, axes, keepdims)
    return length


def _require_axis(inp: Value, axis: Any) -> None:
    if axis is None and inp.dim() != 1:
        raise ArgumentTypeError(f"axis is required unless input is a vector, it has {inp.dim()} axes")


@computes
def normalize(inp: Value, ord: float | None = None, axis: int | None = None, eps: float = 1e-12) -> Any:
    """Divide ``inp`` by its norm along an axis, or by ``eps`` if the norm is smaller."""
    _require_axis(inp, axis)
    value = floating(inp)
    length = _length(value, 2 if ord is None else float(ord), axes_of(inp, axis), True)
    return value / length.clamp_min(eps)


@computes
def matmul(
    inp1: Any, inp2: Any, transpose_a: bool = False, transpose_b: bool = False, compute_mode: str = "default"
) -> Any:
    """Return the matrix product, of batches too; ``transpose_a`` and ``_b`` first swap an operand's last two axes."""
    first, second = operands(inp1, inp2)
    first = first.transpose(-1, -2) if transpose_a else first
    return array_method.matmul(first, second.transpose(-1, -2) if transpose_b else second)


@computes
def dot(inp1: Any, inp2: Any) -> Value:
    """Return the dot product of two tensors with one axis each."""
    first, second = operands(inp1, inp2)
    return torch.dot(first.reshape(-1), second.reshape(-1))


@computes
def matinv(inp: Value) -> Any:
    """Return the inverse of a matrix, or of each matrix of a batch."""
    return torch.linalg.inv(inp)


@computes
def svd(inp: Value, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition: U, S and V transposed; only S if ``compute_uv`` is False."""
    if not compute_uv:
        return torch.linalg.svdvals(inp)
    return tuple(torch.linalg.svd(inp, full_matrices=full_matrices))
