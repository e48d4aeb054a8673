"""``tf.pad``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt


@checked
def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Return a tensor padded before and after along each axis.

    The new elements are ``constant_values``, or in the modes ``"REFLECT"`` and ``"SYMMETRIC"`` the tensor's own
    elements in reverse order, without or with the one at the edge.

    Raises:
        ValueError: there is no such ``mode``.
        InvalidArgumentError: the widths do not fit.
    """
    value, kind = as_tensor(tensor), mode.upper()
    if kind not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ArgumentValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    widths = [[int(width) for width in edges] for edges in convert_to_tensor(paddings).tolist()]
    if len(widths) != value.dim():
        raise invalid_argument(
            f"The first dimension of paddings must be the rank of inputs: {len(widths)}, not {value.dim()}"
        )
    if any(width < 0 for edges in widths for width in edges):
        raise invalid_argument(f"Paddings must be non-negative: {widths}")
    if kind == "CONSTANT":
        return _framed(value, widths, constant_values)
    for axis, edges in enumerate(widths):
        value = value.index_select(axis, _mirrored(value.shape[axis], edges, kind == "REFLECT"))
    return adopt(value)


def _framed(value: torch.Tensor, widths: list[list[int]], number: Any) -> Tensor:
    whole = [before + length + after for (before, after), length in zip(widths, value.shape, strict=True)]
    filling = bool(number) if value.dtype is torch.bool else number
    result = as_tensor(filling, value.dtype).expand(whole).clone()
    result[tuple(slice(edges[0], edges[0] + length) for edges, length in zip(widths, value.shape, strict=True))] = value
    return adopt(result)


def _mirrored(length: int, widths: list[int], without_edge: bool) -> torch.Tensor:
    if max(widths) > length - without_edge:
        raise invalid_argument(f"paddings must be no greater than {length - without_edge}, are {widths}")
    places = list(range(length))
    before, after = places[without_edge:][: widths[0]][::-1], places[::-1][without_edge:][: widths[1]]
    return torch.tensor([*before, *places, *after], dtype=torch.int64)
