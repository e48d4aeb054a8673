"""Tensors of text, of the dtype ``tf.string``: NumPy arrays of bytes, as torch has no such tensors.

They exist beside ``tf.Tensor``: in datasets and in the functions that prepare input. They are not sent to other ranks.
Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.data_types import STRING, DType
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.tensor import Reference, Tensor, adopt, plain
from collshim.tensorflow.tensor_shape import TensorShape

_TEXT = (str, bytes, np.str_, np.bytes_)


class StringTensor:
    """A tensor of bytes. Text is encoded as UTF-8."""

    def __init__(self, values: Any) -> None:
        """Take an array of bytes objects, which is not copied."""
        self._values: np.ndarray[Any, Any] = np.asarray(values, object)

    @property
    def dtype(self) -> DType:
        """``tf.string``."""
        return STRING

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        return TensorShape(self._values.shape)

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._values.ndim

    def dim(self) -> int:
        """Return the number of axes."""
        return self._values.ndim

    def numpy(self) -> Any:
        """Return an array of bytes, or the bytes of a tensor of shape ()."""
        return self._values.copy() if self._values.ndim else self._values[()]

    def tolist(self) -> Any:
        """Return the values as nested lists of bytes."""
        return self._values.tolist()

    def ref(self) -> Reference:
        """Return a hashable reference to this tensor."""
        return Reference(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self._values if dtype is None else self._values.astype(dtype)

    def __getitem__(self, index: Any) -> StringTensor:
        parts = index if isinstance(index, tuple) else (index,)
        places = tuple(part.numpy() if isinstance(part, torch.Tensor) else part for part in parts)
        try:
            return StringTensor(self._values[places])
        except IndexError as error:
            raise invalid_argument(f"slice index {index} of a tensor of shape {self.shape}: {error}") from error

    def __len__(self) -> int:
        if not self._values.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._values)

    def __iter__(self) -> Iterator[StringTensor]:
        if not self._values.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (StringTensor(part) for part in self._values)

    def __eq__(self, other: object) -> Any:
        return _compared(self, other, True)

    def __ne__(self, other: object) -> Any:
        return _compared(self, other, False)

    def __hash__(self) -> int:
        return id(self)

    def __add__(self, other: Any) -> StringTensor:
        return StringTensor(self._values + string_tensor(other)._values)

    def __radd__(self, other: Any) -> StringTensor:
        return StringTensor(string_tensor(other)._values + self._values)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={self.numpy()!r}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype=string)"

    def __format__(self, format_spec: str) -> str:
        return format(self.numpy(), format_spec)


def holds_text(value: Any) -> bool:
    """Return whether a value becomes a tensor of strings: text, an array of text, or lists with text."""
    if isinstance(value, list | tuple):
        return any(map(holds_text, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "USO"
    return isinstance(value, (StringTensor, *_TEXT))


def string_tensor(value: Any, shape: Any = None) -> StringTensor:
    """Convert text, nested lists of text, and arrays of text to a tensor.

    Raises:
        TypeError: the value is a number, or does not fill ``shape``.
        ValueError: the lists have unequal lengths, or contain something other than text.
    """
    if isinstance(value, StringTensor) and shape is None:
        return value
    found = np.array(_nested(value), object)
    kinds = {isinstance(part, bytes) for part in found.flat}
    if False in kinds:
        if True not in kinds and not any(isinstance(part, list) for part in found.flat):
            raise ArgumentTypeError(f"Cannot convert {value!r} to EagerTensor of dtype string")
        raise ArgumentValueError("Can't convert Python sequence with mixed types to Tensor.")
    if shape is None:
        return StringTensor(found)
    wanted = tuple(int(length) for length in ([shape] if isinstance(shape, int) else shape))
    if found.size not in (1, int(np.prod(wanted))):
        raise ArgumentTypeError(f"value has {found.size} elements, but got `shape` {wanted}")
    return StringTensor(np.full(wanted, found.item(), object) if found.size == 1 else found.reshape(wanted))


def numeric(value: Any) -> torch.Tensor:
    """Return a tensor of numbers in torch's own class.

    Raises:
        InvalidArgumentError: it is a tensor of strings.
    """
    if isinstance(value, StringTensor):
        raise invalid_argument(f"Value for attr 'T' of string is not in the list of allowed values: got {value!r}")
    found: torch.Tensor = plain(value)
    return found


def of_texts(texts: Sequence[bytes], shape: Sequence[int]) -> StringTensor:
    """Return a tensor of these bytes in this shape."""
    return StringTensor(np.array(texts, object).reshape(tuple(shape)))


def empty_strings(shape: Any) -> StringTensor:
    """Return a tensor of empty strings."""
    return StringTensor(np.full(tuple(shape), b"", object))


def _nested(value: Any) -> Any:
    """Return text as bytes, in nested lists."""
    if isinstance(value, list | tuple):
        return [_nested(part) for part in value]
    if isinstance(value, StringTensor | np.ndarray):
        return _nested(value.tolist())
    return bytes(value) if isinstance(value, bytes) else str(value).encode() if isinstance(value, str) else value


def _compared(first: StringTensor, second: Any, wanted: bool) -> Any:
    if not holds_text(second):
        return NotImplemented
    same = np.asarray(first._values == string_tensor(second)._values, bool)
    return boolean(same if wanted else ~same)


def boolean(values: Any) -> Tensor:
    """Return a tensor of bools."""
    return adopt(torch.from_numpy(np.array(values, bool)))
