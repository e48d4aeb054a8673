"""Iterators over datasets. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable
from typing import Any

from collshim.tensorflow.data.optional import Optional, next_of
from collshim.tensorflow.errors import end_of_sequence
from collshim.tensorflow.specs import IteratorSpec


class NumpyIterator(collections.abc.Iterator[Any]):
    """An iterator over the elements of a dataset as NumPy arrays and scalars."""

    def __init__(self, elements: Iterable[Any]) -> None:
        self._elements = iter(elements)

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element; StopIteration at the end."""
        return next(self)


class Iterator(collections.abc.Iterator[Any]):
    """An iterator over the elements of a dataset, which can be used once."""

    def __init__(self, elements: Iterable[Any], element_spec: Callable[[], Any]) -> None:
        self._elements, self._element_spec = iter(elements), element_spec

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element, as ``next(iterator)`` does."""
        return self.__next__()

    def get_next(self) -> Any:
        """Return the next element.

        Raises:
            OutOfRangeError: there is no element left.
        """
        for element in self._elements:
            return element
        raise end_of_sequence()

    def get_next_as_optional(self) -> Optional:
        """Return the next element as a ``tf.experimental.Optional``, which is empty at the end."""
        return next_of(self._elements)

    @property
    def _type_spec(self) -> IteratorSpec:
        return IteratorSpec(self.element_spec)

    @property
    def element_spec(self) -> Any:
        """The description of the elements; see ``tf.data.Dataset.element_spec``."""
        return self._element_spec()
