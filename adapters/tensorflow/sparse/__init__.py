"""``tf.sparse``: tensors that store only their nonzero elements. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentTypeError
from collshim.tensorflow.composites import SparseTensor
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt, plain

__all__ = ["SparseTensor", "from_dense", "to_dense"]


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Return a sparse tensor with the nonzero elements of ``tensor``."""
    found = plain(convert_to_tensor(tensor))
    places = torch.nonzero(found)
    return SparseTensor(places, found[tuple(places.T)], found.shape)


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Return the dense tensor, with zeros or ``default_value`` for the missing elements.

    Raises:
        TypeError: ``sp_input`` is not sparse.
        InvalidArgumentError: ``validate_indices`` is True, and a position is outside the shape or out of order.
    """
    if not isinstance(sp_input, SparseTensor):
        raise ArgumentTypeError("Input must be a SparseTensor.")
    shape, places = list(sp_input.shape), sp_input.indices.tolist()
    for number, place in enumerate(places):
        if not all(0 <= one < length for one, length in zip(place, shape, strict=True)):
            raise invalid_argument(f"indices[{number}] = {place} is out of bounds: need 0 <= index < {shape}")
        if validate_indices and number and place <= places[number - 1]:
            raise invalid_argument(f"indices[{number}] = {place} is out of order or repeated")
    whole = torch.full(shape, 0 if default_value is None else default_value, dtype=sp_input.dtype)
    whole[tuple(plain(sp_input.indices).T)] = plain(sp_input.values)
    return adopt(whole)


__getattr__ = saying(__name__, "use torch.sparse")
