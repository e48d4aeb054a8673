"""Tables of keys and values, in Python's dicts. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.constants import constant, is_of_strings, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.errors import FailedPreconditionError, invalid_argument
from collshim.tensorflow.lookup.initializers import KeyValueTensorInitializer
from collshim.tensorflow.tensor import Tensor, adopt


def _dtype_of(dtype: Any) -> Any:
    return STRING if is_of_strings(dtype) else torch_dtype(dtype)


class _Table:
    """A table from keys to values of shape (), or of one shape if it can be changed."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str) -> None:
        self.key_dtype, self.value_dtype, self.name = _dtype_of(key_dtype), _dtype_of(value_dtype), name
        self.default_value = constant(default_value, self.value_dtype)
        self._held: dict[Any, Any] = {}

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, int64."""
        return adopt(torch.tensor(len(self._held)))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the keys' values, and the default value for keys that the table lacks.

        Raises:
            TypeError: the keys have another dtype.
        """
        return self._found(keys, self.default_value)

    def _found(self, keys: Any, default: Any) -> Any:
        given = self._keys(keys)
        values = [self._value(key, default.tolist()) for key in given.flat]
        inner = () if default.ndim == 0 else tuple(default.shape)
        return constant(np.array(values, object).tolist(), self.value_dtype, (*given.shape, *inner))

    def _value(self, key: Any, default: Any) -> Any:
        return self._held.get(key, default)

    def _keys(self, keys: Any) -> Any:
        found = keys if hasattr(keys, "dtype") else convert_to_tensor(keys)
        found = convert_to_tensor(found)
        if found.dtype != self.key_dtype:
            raise ArgumentTypeError(f"Dtype of argument `keys` must be {self.key_dtype}, received: {found.dtype}")
        return np.asarray(found)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys, and their values."""
        values = list(self._held.values())
        shape = (len(values), *self.default_value.shape)
        return constant(list(self._held), self.key_dtype), constant(values, self.value_dtype, shape)


def _python(values: Any) -> list[Any]:
    found: list[Any] = np.asarray(values).tolist()
    return found


class StaticHashTable(_Table):
    """A table that does not change.

    Raises:
        FailedPreconditionError: a key has two values.
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, name or "hash_table")
        initializer.initialize(self)

    def _fill(self, keys: list[Any], values: list[Any]) -> None:
        if len(keys) != len(values):
            raise invalid_argument(f"Keys and values must have the same size: {len(keys)} vs {len(values)}")
        for key, value in zip(keys, values, strict=True):
            if self._held.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {key} has {self._held[key]} and trying to add "
                    f"value {value}",
                )


class StaticVocabularyTable(StaticHashTable):
    """A table from text or integers to int64 ids; other keys have the id behind them.

    Raises:
        ValueError: there are several ids for other keys, among which a hash function of TensorFlow's would choose.
    """

    def __init__(
        self,
        initializer: KeyValueTensorInitializer,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets != 1:
            raise ArgumentValueError(
                f"num_oov_buckets is {num_oov_buckets}, should be 1: only TensorFlow has the hash function that "
                "distributes keys over several"
            )
        if initializer.value_dtype is not torch.int64:
            raise ArgumentTypeError(f"Invalid `value_dtype`, expected int64 but got {initializer.value_dtype}.")
        super().__init__(initializer, 0, name)
        self.default_value = super().size()

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of ids, int64."""
        found: Tensor = super().size() + 1
        return found


class MutableHashTable(_Table):
    """A table that can be changed."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name)

    def lookup(  # type: ignore[override]
        self, keys: Any, dynamic_default_values: Any = None, name: str | None = None
    ) -> Any:
        """Return the keys' values, and the default value for keys that the table lacks."""
        default = self.default_value
        if dynamic_default_values is not None:
            default = convert_to_tensor(dynamic_default_values, self.value_dtype)
        return self._found(keys, default)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys."""
        given = self._keys(keys)
        found = _python(convert_to_tensor(values, self.value_dtype))
        for key, value in zip(given.flat, found if given.ndim else [found], strict=True):
            self._held[key] = value

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Remove keys, if they are there."""
        for key in self._keys(keys).flat:
            self._held.pop(key, None)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Remove keys, by an older name."""
        self.remove(keys)
