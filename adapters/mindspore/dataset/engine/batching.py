"""Batches of rows, with functions that choose their sizes or change them (source: MindSpore 2.10.0)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.engine.nodes import require_within
from collshim.mindspore.dataset.engine.sources import Epochs, Node, Row, as_row, require_columns

__all__ = ["Batch", "Padded", "Replacement"]


class BatchInfo:
    """Information about the batch, for the functions passed to ``batch``."""

    def __init__(self, batch: int, epoch: int) -> None:
        self._batch, self._epoch = batch, epoch

    def get_batch_num(self) -> int:
        """Return the batch's number in its epoch, from 0."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Return the epoch's number, from 0."""
        return self._epoch


class Replacement:
    """A function that replaces columns of a batch: ``per_batch_map``.

    Args:
        function: takes a list of arrays for each input column, and a BatchInfo; returns a list for each output column.
        names: the columns' names before.
        input_columns: the columns that the function takes; empty for all.
        output_columns: the columns for its results; empty for the same columns.
    """

    def __init__(self, function: Any, names: list[str], input_columns: list[str], output_columns: list[str]) -> None:
        require_columns(input_columns, names)
        self._function, self._input = function, input_columns or names
        self._output = output_columns or self._input
        self._before = names
        if input_columns and _parameters(function) not in (None, len(input_columns) + 1):
            refuse(ValueError, "batch: per_batch_map should take a list for each of input_columns, and a BatchInfo")

    def names(self) -> list[str]:
        """Return the columns: new ones replace the old ones, or come first if their number differs."""
        if len(self._input) == len(self._output):
            renamed = dict(zip(self._input, self._output, strict=True))
            return [renamed.get(name, name) for name in self._before]
        return [*self._output, *(name for name in self._before if name not in self._input)]

    def columns(self, columns: list[list[Any]], info: BatchInfo) -> list[list[Any]]:
        """Return the batch's columns, with the function's results."""
        before = dict(zip(self._before, columns, strict=True))
        found = self._function(*(before[name] for name in self._input), info)
        results = list(found) if isinstance(found, tuple) else [found]
        if len(results) != len(self._output):
            text = f"per_batch_map returned {len(results)} columns, and there are {len(self._output)} output_columns"
            refuse(RuntimeError, f"batch: {text}: {self._output}")
        changed = before | dict(zip(self._output, map(_as_list, results), strict=True))
        return [changed[name] for name in self.names()]


class Batch(Node):
    """Stack consecutive rows."""

    def __init__(
        self, child: Node, batch_size: Any, drop_remainder: Any, replacement: Replacement | None = None
    ) -> None:
        super().__init__(child, child.names if replacement is None else replacement.names())
        if callable(batch_size):
            if _parameters(batch_size) not in (None, 1):
                refuse(ValueError, "batch: a callable batch_size should take one parameter, a BatchInfo")
        elif not is_number(batch_size, int):
            refuse(TypeError, "batch_size should either be an int or a callable.")
        else:
            require_within("batch_size", batch_size, 1)
        if not isinstance(drop_remainder, bool):
            refuse(TypeError, f"Argument drop_remainder with value {drop_remainder} is not of type [<class 'bool'>]")
        self._count, self._drops, self._replacement = batch_size, drop_remainder, replacement
        self._rows = child.start

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child, epochs = self._rows(), count()
        return lambda: self._epoch(child(), next(epochs))

    def _epoch(self, rows: Iterator[Row], epoch: int) -> Iterator[Row]:
        for number in count():
            info = BatchInfo(number, epoch)
            length = self._length(info)
            batch = list(islice(rows, length))
            if not batch or (len(batch) < length and self._drops):
                return
            yield self._joined(batch, info)

    def _length(self, info: BatchInfo) -> int:
        if not callable(self._count):
            return int(self._count)
        found: Any = self._count(info)
        if not is_number(found, int) or found < 1:
            refuse(RuntimeError, f"batch: the function batch_size should return a positive integer, but got {found!r}")
        return int(found)

    def _joined(self, batch: list[Row], info: BatchInfo) -> Row:
        columns: list[list[Any]] = [list(arrays) for arrays in zip(*batch, strict=True)]
        if self._replacement is not None:
            columns = [_arrays(values, len(batch)) for values in self._replacement.columns(columns, info)]
        return tuple(map(_stacked, columns, self.names))

    def size(self) -> int:
        """Return the number of batches in an epoch."""
        if callable(self._count):
            return sum(1 for _ in self.start()())
        rows = super().size()
        return int(rows // self._count if self._drops else -(-rows // self._count))

    def batch_size(self) -> int:
        """Return the number of rows in a batch; -1 if a function chooses it."""
        return -1 if callable(self._count) else int(self._count)


class Padded(Batch):
    """Stack consecutive rows, padded to one shape."""

    def __init__(self, child: Node, batch_size: Any, drop_remainder: Any, pad_info: Any) -> None:
        super().__init__(child, batch_size, drop_remainder)
        if pad_info is not None and not isinstance(pad_info, dict):
            refuse(TypeError, f"padded_batch: pad_info should be a dict or None, but got {type(pad_info)}")
        require_columns(list(pad_info or {}), child.names)
        self._padding = dict.fromkeys(child.names, (None, 0)) if pad_info == {} else dict(pad_info or {})

    def _joined(self, batch: list[Row], info: BatchInfo) -> Row:
        columns = dict(zip(self.names, zip(*batch, strict=True), strict=True))
        padded = (_padded(arrays, *self._padding.get(name, ((), None))) for name, arrays in columns.items())
        return tuple(map(_stacked, padded, self.names))


def _padded(arrays: tuple[Any, ...], shape: Any, value: Any) -> list[Any]:
    """Return arrays of one shape; with None for the value, the arrays as they are."""
    if value is None and shape == ():
        return list(arrays)
    lengths: list[Any] = [None] * arrays[0].ndim if shape is None else list(shape)
    if any(array.ndim != len(lengths) for array in arrays):
        refuse(RuntimeError, f"padded_batch: the values should have {len(lengths)} axes, but got {arrays[0].shape}")
    for axis, length in enumerate(lengths):
        lengths[axis] = max(array.shape[axis] for array in arrays) if length is None else length
    return [_padded_to(array, lengths, 0 if value is None else value) for array in arrays]


def _padded_to(array: Any, lengths: list[int], value: Any) -> Any:
    result = np.full(lengths, value, array.dtype)
    overlap = tuple(slice(min(lengths[axis], array.shape[axis])) for axis in range(array.ndim))
    result[overlap] = array[overlap]
    return result


def _stacked(arrays: list[Any], name: str) -> np.ndarray[Any, Any]:
    if len({(array.shape, array.dtype) for array in arrays if array.dtype.kind not in "US"}) > 1:
        shapes = ", ".join(sorted({f"{array.shape} of {array.dtype}" for array in arrays}))
        text = "batch operation expects the same shape and dtype for each data row"
        refuse(RuntimeError, f"Batch: {text}, but got in column {name!r}: {shapes}")
    return np.stack(arrays)


def _as_list(values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        refuse(RuntimeError, f"batch: per_batch_map should return a list for each column, but got {values!r}")


def _arrays(values: list[Any], rows: int) -> list[Any]:
    if len(values) != rows:
        refuse(RuntimeError, f"batch: per_batch_map returned {len(values)} rows of a column, and the batch has {rows}")
    return [as_row((value,), ("",))[0] for value in values]


def _parameters(function: Any) -> int | None:
    """Return how many parameters a function has; None if it takes any number, or if that is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters)
