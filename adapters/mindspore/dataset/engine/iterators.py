"""Iterators of ``mindspore.dataset`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from collshim.mindspore.dataset.engine.sources import Node
from collshim.mindspore.tensor import Tensor

__all__ = ["DictIterator", "TupleIterator"]


class _Epochs:
    """An iterator over epochs: each loop over it yields the rows of the next one, ``num_epochs`` times or endlessly."""

    def __init__(self, node: Node, num_epochs: int, output_numpy: bool) -> None:
        self._next_epoch = node.start()
        self._names = node.names
        self._left, self._output_numpy = num_epochs, output_numpy
        self._rows: Iterator[Any] | None = None

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            if self._left == 0:
                raise StopIteration
            self._left -= 1
            self._rows = self._next_epoch()
        try:
            row = next(self._rows)
        except StopIteration:
            self._rows = None
            raise
        return self._of([self._value(each) for each in row])

    def _of(self, values: list[Any]) -> Any:
        return values

    def _value(self, array: np.ndarray[Any, Any]) -> Any:
        return array if self._output_numpy or array.dtype.kind in "US" else Tensor(array)

    def stop(self) -> None:
        """End the iteration."""
        self._rows, self._left = None, 0

    release = stop


class TupleIterator(_Epochs):
    """An iterator whose rows are lists of the values of ``columns``, or of all columns."""

    def __init__(self, node: Node, columns: list[str] | None, num_epochs: int, output_numpy: bool) -> None:
        super().__init__(node, num_epochs, output_numpy)
        names = self._names if columns is None else columns
        self._places = [self._names.index(name) for name in names]

    def _of(self, values: list[Any]) -> list[Any]:
        return [values[place] for place in self._places]


class DictIterator(_Epochs):
    """An iterator whose rows are dicts of the values, by column."""

    def _of(self, values: list[Any]) -> dict[str, Any]:
        return dict(zip(self._names, values, strict=True))
