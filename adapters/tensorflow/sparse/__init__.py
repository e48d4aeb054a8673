"""``tf.sparse``: tensors of which only the elements that are not zero are kept. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.tensorflow.composites import SparseTensor
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.tensor import Tensor, adopt, plain

__all__ = ["SparseTensor", "from_dense", "to_dense"]


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Return the elements that are not zero."""
    found = plain(convert_to_tensor(tensor))
    places = torch.nonzero(found)
    return SparseTensor(places, found[tuple(places.T)], found.shape)


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Return the whole tensor, with zeros or ``default_value`` elsewhere."""
    whole = torch.full(list(sp_input.shape), 0 if default_value is None else default_value, dtype=sp_input.dtype)
    whole[tuple(plain(sp_input.indices).T)] = plain(sp_input.values)
    return adopt(whole)


__getattr__ = saying(__name__, "use torch.sparse")
