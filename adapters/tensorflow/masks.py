"""``tf.boolean_mask`` and ``tf.sequence_mask``. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import math
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow import string_functions
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.errors import checked
from collshim.tensorflow.string_functions import or_of_strings
from collshim.tensorflow.tensor import Tensor, adopt
from collshim.tensorflow.tensor_shape import TensorShape


@or_of_strings(string_functions.boolean_mask)
@checked
def boolean_mask(tensor: Any, mask: Any, axis: int | None = None, name: str = "boolean_mask") -> Tensor:
    """Return the slices at which ``mask``, whose axes begin at ``axis``, is true.

    Raises:
        ValueError: the mask is a scalar, or its shape does not fit.
    """
    values, chosen, first = as_tensor(tensor), as_tensor(mask), int(axis or 0)
    first += values.dim() if first < 0 else 0
    lengths = list(values.shape)[first : first + chosen.dim()]
    if not chosen.dim():
        raise ArgumentValueError("mask cannot be scalar.")
    if lengths != list(chosen.shape):
        raise ArgumentValueError(f"Shapes {TensorShape(lengths)} and {TensorShape(chosen.shape)} are incompatible")
    rows: Any = (*[slice(None)] * first, chosen.bool())
    return adopt(values[rows])


@checked
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = torch.bool, name: str | None = None) -> Tensor:
    """Return, for each length, a row with that many true elements, followed by false ones.

    Raises:
        ValueError: ``maxlen`` is not a single number.
    """
    counts = as_tensor(lengths)
    if maxlen is None:
        longest = math.ceil(counts.max()) if counts.numel() else 0
    elif as_tensor(maxlen).dim():
        raise ArgumentValueError(f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen}")
    else:
        longest = int(maxlen)
    return adopt((torch.arange(longest) < counts.unsqueeze(-1)).to(torch.bool if dtype is None else torch_dtype(dtype)))
