"""The base of a pipeline's steps, and the sources of its rows (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.dataset.engine.samplers import BuiltinSampler

__all__ = ["Epochs", "Iterated", "Node", "Row", "Sampled", "as_row", "require_columns"]
Row = tuple[np.ndarray[Any, Any], ...]
Epochs = Callable[[], Iterator[Row]]


class Node:
    """A step of a pipeline, which yields rows of NumPy arrays.

    Attributes:
        names: the columns' names.
        child: the node whose rows it changes; None for a source.
    """

    def __init__(self, child: Node | None, names: Sequence[str]) -> None:
        self.child, self.names = child, list(names)

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        raise NotImplementedError(f"{type(self).__name__}.start")

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return 0 if self.child is None else self.child.size()

    def batch_size(self) -> int:
        """Return the number of rows in a batch."""
        return 1 if self.child is None else self.child.batch_size()

    def repeat_count(self) -> int:
        """Return how many times the rows are repeated."""
        return 1 if self.child is None else self.child.repeat_count()


class Sampled(Node):
    """Rows read by index, which a sampler chooses.

    Args:
        names: the columns' names.
        read: a function that returns the row at an index.
        length: the number of rows.
        sampler: the sampler.
    """

    def __init__(self, names: Sequence[str], read: Callable[[int], Any], length: int, sampler: BuiltinSampler) -> None:
        super().__init__(None, names)
        self._read, self._length, self.sampler = read, length, sampler

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        numbers = self.sampler.chosen(self._length)
        return lambda: (as_row(self._read(number), self.names) for number in numbers())

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return self.sampler.total(self._length)

    def numbers(self) -> list[int]:
        """Return the rows of the first epoch."""
        return self.sampler.chosen(self._length)()

    def with_sampler(self, sampler: BuiltinSampler) -> Sampled:
        """Return a node with the same source and another sampler."""
        return Sampled(self.names, self._read, self._length, sampler)


class Iterated(Node):
    """Rows read from an iterator, a new one in each epoch; at most ``num_samples`` rows."""

    def __init__(self, names: Sequence[str], begin: Callable[[], Iterable[Any]], num_samples: int | None) -> None:
        super().__init__(None, names)
        self._begin, self._num_samples = begin, num_samples or None

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        return lambda: (as_row(row, self.names) for row in islice(self._begin(), self._num_samples))

    def size(self) -> int:
        """Return the number of rows, by reading them all."""
        return sum(1 for _ in islice(self._begin(), self._num_samples))


def as_row(values: Any, names: Sequence[str]) -> Row:
    """Return the row from a source or a function as NumPy arrays, one for each column.

    Raises:
        TypeError: a value is not a number, a string or an array.
        RuntimeError: the number of values is not the number of columns.
    """
    alone = isinstance(values, int | float | str | bytes | np.ndarray | np.generic | torch.Tensor)
    row = tuple(map(_array, (values,) if alone else values))
    if len(row) != len(names):
        text = f"the number of columns is {len(names)}, and a row of the source has {len(row)} values"
        refuse(RuntimeError, f"Invalid data, {text}: {list(names)}")
    return row


def _array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        array = np.empty(0, object)
    if array.dtype == object:
        text = "Data type of the input or its converted Numpy array is expected to be int or float or str"
        refuse(TypeError, f"{text}, but got {type(value)}.")
    return array


def require_columns(wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a column that does not exist."""
    for name in wanted:
        if name not in known:
            refuse(
                RuntimeError,
                f"Invalid parameter, column name: {name} doesn't exist in the dataset columns: {list(known)}",
            )
