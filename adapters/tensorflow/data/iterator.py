"""Iterators over datasets, and the elements that they give. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from collshim.tensorflow import structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import end_of_sequence


class Iterator(collections.abc.Iterator[Any]):
    """Gives one element after the other, once."""

    def __init__(self, elements: Iterable[Any]) -> None:
        self._elements = iter(elements)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return next(self._elements)

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        for element in self._elements:
            return element
        raise end_of_sequence()


def mapped(function: Callable[..., Any], *elements: Any) -> Any:
    """``function`` of the components of elements at the same place: tuples and mappings are taken apart."""
    first = elements[0]
    if isinstance(first, Mapping):
        return structures.mapping_like(first, {key: mapped(function, *[one[key] for one in elements]) for key in first})
    if isinstance(first, tuple):
        return structures.like(first, [mapped(function, *parts) for parts in zip(*elements, strict=True)])
    return function(*elements)


def components(element: Any) -> list[Any]:
    """The components of an element, in order."""
    found: list[Any] = []
    mapped(found.append, element)
    return found


def as_element(value: Any) -> Any:
    """What a program's function returned, with tensors for its components; lists become tuples."""
    if isinstance(value, list):
        return tuple(as_element(part) for part in value)
    if isinstance(value, tuple | Mapping):
        return mapped(as_element, value)
    return convert_to_tensor(value)
