"""The iterators of ``Strategy.make_dataset_iterator`` and ``make_input_fn_iterator``, TensorFlow's older form.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collshim.tensorflow.errors import end_of_sequence


class InputIterator:
    """An iterator over a strategy's dataset that can begin again."""

    def __init__(self, elements: Iterable[Any]) -> None:
        self._elements = elements
        self._iterator = iter(elements)

    def get_next(self, name: str | None = None) -> Any:
        """Return the next element, with a part for each replica.

        Raises:
            OutOfRangeError: there is no element left.
        """
        for element in self._iterator:
            return element
        raise end_of_sequence()

    def initialize(self) -> list[Any]:
        """Begin again; return an empty list, because there is no operation to run."""
        self._iterator = iter(self._elements)
        return []

    @property
    def initializer(self) -> list[Any]:
        """Begin again, as ``initialize`` does."""
        return self.initialize()
