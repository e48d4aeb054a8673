"""``tf.DType``: TensorFlow's description of a dtype. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np
import torch


class DType(ABC):  # noqa: B024
    """TensorFlow's description of a dtype. It equals torch's dtype, which counts as a ``tf.DType`` too.

    ``tf.as_dtype`` returns it; every argument ``dtype`` accepts it.

    Attributes:
        torch_dtype: the torch dtype.
    """

    def __init__(self, torch_dtype: torch.dtype) -> None:
        self.torch_dtype = torch_dtype

    @property
    def name(self) -> str:
        """The name, such as ``float32`` for ``tf.float32``."""
        return str(self.torch_dtype).removeprefix("torch.")

    @property
    def is_floating(self) -> bool:
        """Whether it is a floating-point dtype."""
        return self.torch_dtype.is_floating_point

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex dtype."""
        return self.torch_dtype.is_complex

    @property
    def is_bool(self) -> bool:
        """Whether it is bool."""
        return self.torch_dtype is torch.bool

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer dtype; bool is not."""
        return not (self.is_floating or self.is_complex or self.is_bool)

    @property
    def is_unsigned(self) -> bool:
        """Whether it is an unsigned integer dtype."""
        return self.is_integer and not self.torch_dtype.is_signed

    @property
    def is_numpy_compatible(self) -> bool:
        """True: all dtypes have a NumPy type."""
        return True

    @property
    def size(self) -> int:
        """The number of bytes of one element."""
        return self.torch_dtype.itemsize

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's type; float32 for bfloat16, which NumPy does not have."""
        return np.dtype("float32" if self.name == "bfloat16" else self.name).type

    @property
    def base_dtype(self) -> DType:
        """The dtype itself: there are no references to variables here."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of a complex dtype's parts; for other dtypes, the dtype itself."""
        return DType(self.torch_dtype.to_real()) if self.is_complex else self

    @property
    def min(self) -> Any:
        """The least number.

        Raises:
            TypeError: the dtype is bool or complex.
        """
        return self._range().min

    @property
    def max(self) -> Any:
        """The greatest number.

        Raises:
            TypeError: the dtype is bool or complex.
        """
        return self._range().max

    def _range(self) -> Any:
        if self.is_bool or self.is_complex:
            raise TypeError(f"Cannot find minimum or maximum value of {self}.")
        return torch.finfo(self.torch_dtype) if self.is_floating else torch.iinfo(self.torch_dtype)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether ``other`` is the same dtype."""
        return bool(self == other)

    def __eq__(self, other: object) -> bool:
        found = str(getattr(other, "torch_dtype", other))
        return found.removeprefix("torch.") == self.name

    def __hash__(self) -> int:
        return hash(self.torch_dtype)

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"


class _String(DType):
    """The dtype of text, which torch lacks."""

    @property
    def is_floating(self) -> bool:
        """False."""
        return False

    @property
    def is_complex(self) -> bool:
        """False."""
        return False

    @property
    def is_bool(self) -> bool:
        """False."""
        return False

    @property
    def is_integer(self) -> bool:
        """False."""
        return False

    @property
    def name(self) -> str:
        """The name, ``string``."""
        return "string"

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's type of any objects."""
        return object

    def __init__(self) -> None:
        """Make the dtype; there is one object of it, ``tf.string``."""

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other == "string")

    def __hash__(self) -> int:
        return hash("string")

    def _range(self) -> Any:
        raise TypeError(f"Cannot find minimum or maximum value of {self}.")


STRING = _String()

DType.register(torch.dtype)
