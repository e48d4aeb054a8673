"""``tf.constant``, which returns a torch tensor, since TensorFlow itself is not used.

Source: TensorFlow 2.21, ``tf.constant`` run eagerly on CPU on Python numbers, sequences, arrays and mixtures.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

import numpy as np
import torch

from collshim.adapting.devices import tell_of_cpu
from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.data_types import STRING, DType
from collshim.tensorflow.python_numbers import tensor_of
from collshim.tensorflow.string_tensor import holds_text, string_tensor
from collshim.tensorflow.tensor import Tensor, adopt, plain

_PYTHON_TYPES = {float: torch.float32, bool: torch.bool}


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """Return a new tensor on the CPU with ``value``, in TensorFlow's dtype for it.

    Without ``dtype``, the first number determines it: bool; int32 for an integer (int64 if a number needs it, float32
    if a float follows); float32 for a float, or float16 or float64 if it is such a NumPy number; complex128. An array
    keeps its dtype. Text becomes a tensor of ``tf.string``, which is of a class of its own.

    Args:
        value: a number, nested lists of numbers and arrays, or an array, which is copied.
        dtype: a ``torch.dtype``, a NumPy dtype or the name of one; None for the dtype above. Integers that do not fit
            lose their upper bits, and floats become infinite.
        shape: the result's shape, an int or several ints; a single value fills it.
        name: not used.

    Raises:
        ArgumentTypeError: ``dtype`` cannot hold the Python numbers (2.5 as int32, 1 as bool); there is no such
            ``dtype``; ``shape`` has entries that are not ints, or ``value`` does not fill it.
        ArgumentValueError: ``value`` contains something other than numbers, numbers whose kinds do not mix (others
            after a bool, a complex number after others), lists of unequal lengths, or, without ``dtype``, a number that
            is too large; ``shape`` has a negative length.
    """
    tell_of_cpu("tensorflow")
    if is_of_strings(dtype) or (dtype is None and holds_text(value)):
        text: Any = string_tensor(value, shape)
        return text  # type: ignore[no-any-return]
    wanted = None if dtype is None else torch_dtype(dtype)
    if hasattr(value, "_as_tensor"):
        found = plain(value._as_tensor())
        return adopt(_reshape(found if wanted is None else found.to(wanted), shape))
    if isinstance(value, torch.Tensor):
        if wanted is not None and wanted is not value.dtype:
            raise ArgumentTypeError(f"Expected tensor {value!r} with dtype {wanted}, but got dtype {value.dtype}.")
        return adopt(_reshape(plain(value), shape))
    if is_array(value):
        tensor = as_torch(value).detach().clone()
        return adopt(_reshape(tensor if wanted is None else tensor.to(wanted), shape))
    return adopt(_reshape(tensor_of(value, wanted), shape))


def is_of_strings(dtype: Any) -> bool:
    """Return whether ``dtype`` is ``tf.string``, its name, or Python's ``str``."""
    return dtype is STRING or dtype is str or (isinstance(dtype, str) and dtype == "string")


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return the torch dtype for a torch dtype, a NumPy dtype or its name; raise ArgumentTypeError for others."""
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype is None:
        raise ArgumentTypeError("Cannot convert the argument `type_value`: None to a TensorFlow DType.")
    if isinstance(dtype, DType):
        return dtype.torch_dtype
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        return _PYTHON_TYPES[dtype]
    name = dtype if isinstance(dtype, str) else str(dtype).removeprefix("torch.")
    name = name if isinstance(getattr(torch, name, None), torch.dtype) else _numpy_name(dtype)
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype) or dtype in (int, complex):
        raise ArgumentTypeError(f"dtype is {dtype!r}, should be a torch dtype, a NumPy dtype or the name of one")
    return found


def _numpy_name(dtype: Any) -> str:
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return ""


def _reshape(tensor: torch.Tensor, shape: Any) -> torch.Tensor:
    if shape is None:
        return tensor
    size = torch.Size(_lengths_of(shape))
    if tensor.numel() == 1:
        return tensor.reshape(()).expand(size).clone()
    if tensor.numel() != size.numel():
        raise ArgumentTypeError(
            f"value has {tensor.numel()} elements, but got `shape` {tuple(size)} with {size.numel()} elements"
        )
    return tensor.reshape(size)


def _lengths_of(shape: Any) -> list[int]:
    is_sequence = isinstance(shape, Iterable) and not isinstance(shape, str) and getattr(shape, "ndim", 1) > 0
    values: Any = shape if is_sequence else [shape]
    try:
        lengths = [index(length) for length in values]
    except TypeError as error:
        raise ArgumentTypeError(f"shape is {shape!r}, should be an int or several") from error
    if any(length < 0 for length in lengths):
        raise ArgumentValueError(f"shape is {shape!r}: Dimension {min(lengths)} must be >= 0")
    return lengths
