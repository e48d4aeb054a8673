"""TensorFlow's functions that sort, search and count equal elements. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import axis_of, pair, tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.string_tensor import holds_text, string_tensor
from collshim.tensorflow.tensor import Tensor, adopt, plain


@checked
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Return the elements sorted along an axis."""
    return adopt(torch.sort(_sortable(values), _sorted_axis(axis), _descends(direction)).values)


@checked
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Return the indices, int32, that sort the elements along an axis."""
    found = torch.sort(_sortable(values), dim=_sorted_axis(axis), descending=_descends(direction), stable=True)
    return adopt(found.indices.int())


def _sorted_axis(axis: Any) -> int:
    if axis is None or isinstance(axis, list | tuple) or tensor(axis).dim():
        raise ArgumentValueError(f"Argument `axis` must be a constant scalar. Received: axis={axis}.")
    return axis_of(axis)


def _sortable(values: Any) -> torch.Tensor:
    found = tensor(values)
    if not found.dim():
        raise invalid_argument("slice index -1 of dimension 0 out of bounds: a scalar cannot be sorted")
    return found


def _descends(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentValueError(f"sort: direction is {direction!r}, should be 'ASCENDING' or 'DESCENDING'")
    return direction == "DESCENDING"


class Unique(NamedTuple):
    """The distinct elements, and for each element its index among them."""

    y: Any
    idx: Tensor


@checked
def unique(x: Any, out_idx: Any = torch.int32, name: str | None = None) -> Unique:
    """Return the distinct elements in order of first occurrence, and for each element its index among them."""
    if holds_text(x):
        texts = string_tensor(x).tolist()
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        indices = torch.tensor([places[text] for text in texts], dtype=_or_int32(out_idx))
        return Unique(string_tensor(list(places)), adopt(indices))
    values = tensor(x)
    if values.dim() != 1:
        raise invalid_argument(f"unique expects a 1D vector, got shape {list(values.shape)}")
    found, places = torch.unique(values, return_inverse=True)
    first = torch.full((len(found),), len(values)).scatter_reduce(0, places, torch.arange(len(values)), "amin")
    order = torch.argsort(first)
    return Unique(adopt(found[order]), adopt(torch.argsort(order)[places].to(_or_int32(out_idx))))


class UniqueWithCounts(NamedTuple):
    """The distinct elements, for each element its index among them, and how often each of them occurs."""

    y: Any
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


@checked
def unique_with_counts(x: Any, out_idx: Any = torch.int32, name: str | None = None) -> UniqueWithCounts:
    """Return what ``unique`` does, and how often each distinct element occurs."""
    found = unique(x, out_idx)
    counts = torch.bincount(plain(found.idx), minlength=len(found.y))
    return UniqueWithCounts(*found, adopt(counts.to(_or_int32(out_idx))))


@checked
def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = torch.int32, name: str | None = None
) -> Tensor:
    """Return the indices at which the values can be inserted so that the sequence stays sorted.

    Raises:
        ValueError: ``side`` is neither ``"left"`` nor ``"right"``.
        InvalidArgumentError: the dtypes differ.
    """
    if side not in ("left", "right"):
        raise ArgumentValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    places = torch.searchsorted(*pair(sorted_sequence, values, "LowerBound"), right=side == "right")
    return adopt(places.to(_or_int32(out_type)))


def _or_int32(dtype: Any) -> torch.dtype:
    return torch.int32 if dtype is None else torch_dtype(dtype)


class TopKV2(NamedTuple):
    """The largest elements, and their indices."""

    values: Tensor
    indices: Tensor


@checked
def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = torch.int32, name: str | None = None
) -> TopKV2:
    """Return the ``k`` largest elements along the last axis, and their indices."""
    given = tensor(input)
    if not given.dim():
        raise invalid_argument("input must be >= 1-D, got shape []")
    values, places = torch.topk(given, int(k), sorted=sorted)
    return TopKV2(adopt(values), adopt(places.to(torch_dtype(index_type))))


@checked
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """Return the place of each number from 0 on in ``x``, which has each once.

    Raises:
        InvalidArgumentError: this is not so, or the numbers are not a vector of integers.
    """
    order = tensor(x)
    is_vector = order.dim() == 1 and order.dtype in (torch.int32, torch.int64)
    if not is_vector or order.sort().values.tolist() != list(range(len(order))):
        raise invalid_argument(f"x should be a vector with each number from 0 on once; got {order.tolist()}")
    return adopt(torch.argsort(order).to(order.dtype))
