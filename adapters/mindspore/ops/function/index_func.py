"""Functions of ``mindspore.ops`` that slice, index, print and draw random numbers (source: MindSpore 2.10.0)."""

from __future__ import annotations

from builtins import slice as _slice
from collections.abc import Sequence
from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.common.seed import generator
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = [
    "addn",
    "eye",
    "gather",
    "gather_nd",
    "is_tensor",
    "normal",
    "print_",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "slice",
    "standard_normal",
    "strided_slice",
    "uniform",
]


def addn(x: Sequence[Tensor]) -> Tensor:
    """Return the sum of several tensors."""
    for each in x:
        settle(each)
    return cast(Tensor, wrap(sum(x[1:], x[0])))


def eye(n: int, m: int | None = None, dtype: Any = None) -> Tensor:
    """Return ``n`` rows with ones on the diagonal, and ``m``, by default ``n``, columns; float32 by default."""
    return Tensor(torch.eye(n, n if m is None else m, dtype=torch_dtype(dtype or torch.float32)))


def gather(input_params: Tensor, input_indices: Tensor, axis: int, batch_dims: int = 0) -> Tensor:
    """Return the entries at these indices along ``axis``, which the axes of ``input_indices`` replace.

    Raises:
        NotImplementedError: if ``batch_dims`` is not 0.
    """
    if batch_dims:
        refuse(NotImplementedError, f"gather: batch_dims is {batch_dims}, should be 0")
    settle(input_params)
    place = axis % input_params.dim()
    picked = input_params.index_select(place, input_indices.reshape(-1))
    shape = (*input_params.shape[:place], *input_indices.shape, *input_params.shape[place + 1 :])
    return cast(Tensor, wrap(picked.reshape(shape)))


def gather_nd(input_x: Tensor, indices: Tensor) -> Tensor:
    """Return the entries at the positions in the last axis of ``indices``."""
    settle(input_x)
    return cast(Tensor, wrap(input_x[tuple(indices.movedim(-1, 0).to(torch.int64))]))


def is_tensor(obj: Any) -> bool:
    """Return whether the value is a tensor."""
    return isinstance(obj, Tensor)


def print_(*input_x: Any) -> None:
    """Print each value on its own line."""
    for value in input_x:
        print(value if isinstance(value, str) else repr(value), flush=True)


def slice(input_x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """Return ``size`` entries of each axis from ``begin`` on; a size of -1 means all remaining entries."""
    ends = [None if length == -1 else start + length for start, length in zip(begin, size, strict=True)]
    settle(input_x)
    return cast(Tensor, wrap(input_x[tuple(_slice(start, end) for start, end in zip(begin, ends, strict=True))]))


def strided_slice(
    input_x: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Return every ``strides``-th entry of each axis between ``begin`` and ``end``.

    An axis whose bit is set in ``begin_mask`` or ``end_mask`` has no such limit; an axis in ``shrink_axis_mask`` is
    dropped, with only its first entry.

    Raises:
        NotImplementedError: if ``ellipsis_mask`` or ``new_axis_mask`` is not 0.
    """
    if ellipsis_mask or new_axis_mask:
        refuse(NotImplementedError, "strided_slice: ellipsis_mask and new_axis_mask should be 0")
    settle(input_x)
    places: list[Any] = []
    for axis, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << axis
        wanted = _slice(None if begin_mask & bit else first, None if end_mask & bit else last, step)
        places.append(first if shrink_axis_mask & bit else wanted)
    return cast(Tensor, wrap(input_x[tuple(places)]))


def rand(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Return random numbers from 0 to 1."""
    return uniform(_shape(size), 0.0, 1.0, seed, dtype or torch.float32)


def randn(*size: Any, dtype: Any = None, seed: int | None = None) -> Tensor:
    """Return random numbers of the standard normal distribution."""
    return normal(_shape(size), 0.0, 1.0, seed).astype(dtype or torch.float32)


def randint(low: int, high: int, size: Sequence[int], seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return random integers from ``low`` to below ``high``; the default dtype is int64."""
    made = torch.randint(low, high, tuple(size), generator=_generator(seed))
    return cast(Tensor, wrap(made.to(torch_dtype(dtype or torch.int64))))


def rand_like(input: Tensor, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return random numbers from 0 to 1, with the shape of ``input`` and its dtype, or ``dtype``."""
    return rand(*input.shape, dtype=dtype or input.dtype, seed=seed)


def randn_like(input: Tensor, seed: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return random numbers of the standard normal distribution, in the shape and dtype of ``input``."""
    return randn(*input.shape, dtype=dtype or input.dtype, seed=seed)


def standard_normal(shape: Sequence[int], seed: int | None = None) -> Tensor:
    """Return random numbers of the standard normal distribution."""
    return normal(shape, 0.0, 1.0, seed)


def normal(shape: Sequence[int], mean: Any, stddev: Any, seed: int | None = None) -> Tensor:
    """Return random numbers of a normal distribution."""
    return cast(Tensor, wrap(torch.randn(tuple(shape), generator=_generator(seed)) * stddev + mean))


def uniform(
    shape: Sequence[int], minval: Any, maxval: Any, seed: int | None = None, dtype: Any = torch.float32
) -> Tensor:
    """Return random numbers from ``minval`` to ``maxval``."""
    made = torch.rand(tuple(shape), generator=_generator(seed)) * (maxval - minval) + minval
    return cast(Tensor, wrap(made.to(torch_dtype(dtype))))


def _shape(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], list | tuple) else size


def _generator(seed: int | None) -> torch.Generator | None:
    return generator() if seed is None else torch.Generator().manual_seed(seed)
