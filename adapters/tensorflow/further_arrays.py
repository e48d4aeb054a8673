"""More functions on tensors of ``tf``, over torch. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import tensor
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt, plain
from collshim.tensorflow.tensor_shape import TensorShape


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor; refuse one of another shape, in which None is any length.

    Raises:
        InvalidArgumentError: it has another shape.
    """
    found, wanted = convert_to_tensor(x), TensorShape(shape)
    if not wanted.is_compatible_with(found.shape):
        raise invalid_argument(
            f"Shape of tensor input {list(found.shape)} is not compatible with expected shape {list(wanted)}."
        )
    return found


def boolean_mask(tensor: Any, mask: Any, axis: int | None = None, name: str = "boolean_mask") -> Tensor:
    """Return the rows, from ``axis`` on, at which ``mask`` is true.

    Raises:
        ValueError: the mask has no axes, or other lengths.
    """
    values, chosen, first = plain(convert_to_tensor(tensor)), plain(convert_to_tensor(mask)).bool(), axis or 0
    lengths = list(values.shape)[first : first + chosen.dim()]
    if not chosen.dim():
        raise ArgumentValueError("mask cannot be scalar.")
    if lengths != list(chosen.shape):
        raise ArgumentValueError(f"Shapes {TensorShape(lengths)} and {TensorShape(chosen.shape)} are incompatible")
    return adopt(values[(*[slice(None)] * first, chosen)])


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Return a tensor with each row repeated, as often as ``repeats`` says."""
    counts = tensor(repeats).long()
    return adopt(torch.repeat_interleave(tensor(input), counts if counts.dim() else int(counts), axis))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return a tensor whose elements are in the opposite order along these axes."""
    axes = [int(one) for one in convert_to_tensor(axis).reshape(-1).tolist()]
    return adopt(plain(convert_to_tensor(tensor)).flip(axes))


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Return a part of a tensor: ``size`` elements from ``begin`` on, for each axis; -1 for all that follow."""
    found = tensor(input_)
    for axis, (first, count) in enumerate(zip(lengths_of(begin), lengths_of(size), strict=True)):
        found = found.narrow(axis, first, found.shape[axis] - first if count == -1 else count)
    return adopt(found)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Return a tensor with more elements before and after, for each axis; all are ``constant_values``.

    Raises:
        ValueError: ``mode`` is another one.
    """
    if mode.upper() != "CONSTANT":
        raise ArgumentValueError(f"pad: mode is {mode!r}, should be 'CONSTANT'")
    widths = [int(width) for edges in reversed(convert_to_tensor(paddings).tolist()) for width in edges]
    return adopt(functional.pad(convert_to_tensor(tensor), widths, value=float(constant_values)))


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Return the elements in order along an axis."""
    return adopt(torch.sort(tensor(values), axis, _descends(direction)).values)


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Return the places of the elements in order along an axis, int32."""
    found = torch.sort(tensor(values), dim=axis, descending=_descends(direction), stable=True)
    return adopt(found.indices.int())


def _descends(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ArgumentValueError(f"sort: direction is {direction!r}, should be 'ASCENDING' or 'DESCENDING'")
    return direction == "DESCENDING"


class Unique(NamedTuple):
    """The distinct elements, and for each element the place of its equal among them."""

    y: Tensor
    idx: Tensor


def unique(x: Any, out_idx: Any = torch.int32, name: str | None = None) -> Unique:
    """Return the distinct elements in the order in which they come, and where each element's equal is."""
    values = tensor(x)
    found, places = torch.unique(values, return_inverse=True)
    first = torch.full((len(found),), len(values)).scatter_reduce(0, places, torch.arange(len(values)), "amin")
    order = torch.argsort(first)
    return Unique(adopt(found[order]), adopt(torch.argsort(order)[places].to(torch_dtype(out_idx))))


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Return the sum of products that the equation describes."""
    return adopt(torch.einsum(equation, *[tensor(one) for one in inputs]))


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Return the products summed over these axes of both: a number of axes, or a list for each."""
    given = axes.tolist() if hasattr(axes, "tolist") else axes
    wanted: Any = given if isinstance(given, int) else [[one] if isinstance(one, int) else list(one) for one in given]
    return adopt(torch.tensordot(tensor(a), tensor(b), wanted))


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, for each axis; ``indexing`` is ``"xy"`` or ``"ij"``."""
    return [adopt(one) for one in torch.meshgrid(*map(tensor, args), indexing=kwargs.get("indexing", "xy"))]


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return the elements moved along axes, from the end to the begin."""
    return adopt(torch.roll(tensor(input), lengths_of(shift), lengths_of(axis)))


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = torch.bool, name: str | None = None) -> Tensor:
    """Return for each length that many ones, then zeros."""
    counts = tensor(lengths)
    longest = int(counts.max()) if maxlen is None else int(maxlen)
    return adopt((torch.arange(longest) < counts.unsqueeze(-1)).to(torch_dtype(dtype)))


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = torch.int32, name: str | None = None
) -> Tensor:
    """Return the places at which the values fit into the order."""
    places = torch.searchsorted(tensor(sorted_sequence), tensor(values), right=side == "right")
    return adopt(places.to(torch_dtype(out_type)))


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """Return a tensor scaled down to this length at most."""
    values = tensor(t)
    length = torch.linalg.vector_norm(values, dim=axes, keepdim=axes is not None)
    return adopt(values * clip_norm / torch.clamp(length, min=float(clip_norm)))


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Return tensors scaled down to this length of all together, and that length; None stays."""
    length = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    scale = float(clip_norm) / torch.clamp(tensor(length), min=float(clip_norm))
    return [None if one is None else adopt(tensor(one) * scale) for one in t_list], length


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """Return the length of all tensors together."""
    parts = [torch.linalg.vector_norm(tensor(one)) for one in t_list if one is not None]
    return adopt(torch.linalg.vector_norm(torch.stack(parts)))


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Return the stacked results of a function of each row; ``elems`` and the results may be tuples of tensors."""
    whole = elems if isinstance(elems, tuple | list) else (elems,)
    rows = zip(*[convert_to_tensor(one) for one in whole], strict=True)
    found = [fn(type(whole)(row) if isinstance(elems, tuple | list) else row[0]) for row in rows]
    if isinstance(found[0], tuple | list):
        return type(found[0])(_stacked(column) for column in zip(*found, strict=True))
    return _stacked(found)


def _stacked(rows: Sequence[Any]) -> Tensor:
    return adopt(torch.stack([tensor(row) for row in rows]))
