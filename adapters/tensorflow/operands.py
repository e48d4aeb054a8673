"""Converts the second operand of a tensor's operator to its dtype. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch

from collshim.arrays import as_torch
from collshim.errors import ArgumentValueError
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.python_numbers import tensor_of


def operand(value: Any, dtype: torch.dtype) -> Any:
    """Convert numbers, lists and NumPy arrays to ``dtype``, and variables to their value; tensors are unchanged.

    Returns:
        NotImplemented for a value that is neither a tensor nor a number.

    Raises:
        TypeError: ``dtype`` cannot hold the Python numbers, such as 2.5 with integers.
        ValueError: ``value`` is None, or has lists of unequal lengths.
    """
    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "_as_tensor"):
        return value._as_tensor()
    if isinstance(value, np.ndarray | np.generic):
        return as_torch(value).to(dtype)
    if isinstance(value, list | tuple):
        if holds_a_tensor(value):
            return torch.stack([operand(part, dtype) for part in value])
        return tensor_of(value, dtype)
    if isinstance(value, int | float | complex):
        if isinstance(value, bool) and dtype is not torch.bool:
            return int(value)
        return value if _holds(dtype, value) else tensor_of(value, dtype)
    if value is None:
        raise ArgumentValueError(
            "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor."
        )
    return NotImplemented


def numbers(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor that is not boolean.

    Raises:
        InvalidArgumentError: the tensor is boolean.
    """
    return _refused(value) if value.dtype is torch.bool else value


def fractions(value: torch.Tensor) -> torch.Tensor:
    """Return a tensor of floats or complex numbers.

    Raises:
        InvalidArgumentError: the tensor holds integers or booleans.
    """
    return value if value.is_floating_point() or value.is_complex() else _refused(value)


def _refused(value: torch.Tensor) -> NoReturn:
    name = str(value.dtype).removeprefix("torch.")
    raise invalid_argument(f"Value for attr 'T' of {name} is not in the list of allowed values: use tf.cast first")


def holds_a_tensor(value: Any) -> bool:
    """Return whether nested lists contain a tensor or a variable."""
    if isinstance(value, list | tuple):
        return any(holds_a_tensor(part) for part in value)
    return isinstance(value, torch.Tensor) or hasattr(value, "_as_tensor")


_OF_NUMBERS = {f"__{turned}{name}__" for turned in ("", "r") for name in ("add", "sub", "mod", "pow", "matmul")}
_OF_NUMBERS |= {"__lt__", "__le__", "__gt__", "__ge__"}


def operator_on(name: str) -> Callable[[Any, Any], Any]:
    """Return torch's operator of that name, extended to all second operands that ``operand`` accepts."""
    own = getattr(torch.Tensor, name)
    compares = name in ("__eq__", "__ne__")

    @checked
    def compute(self: Any, other: Any) -> Any:
        if compares and other is None:
            return name == "__ne__"
        found = operand(other, self.dtype)
        if found is NotImplemented:
            return NotImplemented
        if compares and not _fit(self, found):
            return self.new_full((), name == "__ne__", dtype=torch.bool)
        if name in _OF_NUMBERS and (isinstance(found, bool) or getattr(found, "dtype", None) is torch.bool):
            numbers(self)
        return own(self, found)

    compute.__name__, compute.__doc__ = name, f"torch's ``{name}``, with numbers, lists and arrays in this dtype."
    return compute


def _fit(one: torch.Tensor, other: Any) -> bool:
    """Return whether two operands can be broadcast; tensors that cannot are not equal, without an error."""
    if not isinstance(other, torch.Tensor):
        return True
    ends = zip(reversed(tuple(one.shape)), reversed(tuple(other.shape)), strict=False)
    return all(left == right or 1 in (left, right) for left, right in ends)


def _holds(dtype: torch.dtype, number: complex) -> bool:
    if isinstance(number, int):
        return dtype is not torch.bool or isinstance(number, bool)
    return dtype.is_complex or (dtype.is_floating_point and isinstance(number, float))
