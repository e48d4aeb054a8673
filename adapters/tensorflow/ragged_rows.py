"""Reductions of ragged tensors, row by row or across rows. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.composites import RaggedTensor
from collshim.tensorflow.tensor import Tensor, adopt, plain


def over_rows(reduce: Callable[..., Tensor], fractions: bool = False) -> Callable[..., Tensor]:
    """Return a reduction that takes ragged tensors too; with ``fractions``, integers in them become float64."""

    @functools.wraps(reduce)
    def reduction(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        if not isinstance(input_tensor, RaggedTensor):
            return reduce(input_tensor, axis, keepdims)
        if fractions and not input_tensor.values.is_floating_point():
            input_tensor = RaggedTensor(adopt(plain(input_tensor.values).double()), input_tensor.row_lengths().tolist())
        if axis is None:
            return reduce(input_tensor.flat_values, None, keepdims)
        return _along(reduce, input_tensor, int(axis), keepdims)

    return reduction


def _along(reduce: Callable[..., Tensor], tensor: RaggedTensor, axis: int, keepdims: bool) -> Tensor:
    place = axis % tensor.dim() if -tensor.dim() <= axis < tensor.dim() else axis
    if place not in (0, 1):
        raise ArgumentValueError(f"a ragged tensor is reduced along axis 0 or 1, but got axis={axis}")
    rows = list(torch.split(plain(tensor.values), tensor.row_lengths().tolist()))
    if place == 0:
        longest = max(map(len, rows), default=0)
        rows = [torch.stack([row[column] for row in rows if len(row) > column]) for column in range(longest)]
    found = [plain(reduce(row, 0)) for row in rows]
    result = torch.stack(found) if found else plain(tensor.values)[:0]
    return adopt(result.unsqueeze(place) if keepdims else result)
