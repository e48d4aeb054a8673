"""The steps of a pipeline that change its rows (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.core import config
from collshim.mindspore.dataset.engine.sources import Epochs, Node, Row, as_row, require_columns

__all__ = [
    "Concatenated",
    "Filtered",
    "Mapped",
    "Projected",
    "Renamed",
    "Repeated",
    "Shuffled",
    "Skipped",
    "Taken",
    "Zipped",
    "require_within",
]


class Mapped(Node):
    """Apply operations to some columns."""

    def __init__(self, child: Node, operations: Any, input_columns: list[str], output_columns: list[str]) -> None:
        self._operations = operations if isinstance(operations, list) else [operations]
        for operation in self._operations:
            if not callable(operation):
                text = "element of method map should be a python function or class method which should be callable"
                refuse(ValueError, f"Parameter operations's {text}, but got: {operation}.")
        if not self._operations:
            refuse(ValueError, "Parameter operations of method map should have an operation, but got an empty list")
        self._input = input_columns or child.names[:1]
        self._output = output_columns or self._input
        require_columns(self._input, child.names)
        super().__init__(child, self._columns(child.names))
        self._places = [child.names.index(name) for name in self._input]
        self._rows = child.start

    def _columns(self, names: list[str]) -> list[str]:
        """Return the columns: new ones replace the old ones, or come first if their number differs."""
        if len(self._input) == len(self._output):
            renamed = dict(zip(self._input, self._output, strict=True))
            return [renamed.get(name, name) for name in names]
        return [*self._output, *(name for name in names if name not in self._input)]

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()
        return lambda: map(self._changed, child())

    def _changed(self, row: Row) -> Row:
        values: tuple[Any, ...] = tuple(row[place] for place in self._places)
        for operation in self._operations:
            found = operation(*values)
            values = tuple(found) if isinstance(found, tuple) else (found,)
        if len(values) != len(self._output):
            text = f"the operations return {len(values)} values, and there are {len(self._output)} output_columns"
            refuse(RuntimeError, f"map: {text}: {self._output}")
        changed = as_row(values, self._output)
        if len(self._input) == len(self._output):
            replaced = dict(zip(self._places, changed, strict=True))
            return tuple(replaced.get(place, array) for place, array in enumerate(row))
        return (*changed, *(array for place, array in enumerate(row) if place not in self._places))


class Shuffled(Node):
    """Draw each row from a buffer of the next rows; with a seed, in the same order in each epoch."""

    def __init__(self, child: Node, buffer_size: Any, seed: int | None = None) -> None:
        super().__init__(child, child.names)
        if not is_number(buffer_size, int):
            text = f"Argument buffer_size with value {buffer_size} is not of type [<class 'int'>]"
            refuse(TypeError, f"{text}, but got {type(buffer_size)}.")
        require_within("buffer_size", buffer_size, 2)
        self._size, self._rows, self._seed = buffer_size, child.start, seed

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child, generator = self._rows(), np.random.default_rng(config.seed_of_sampler())

        def next_epoch() -> Iterator[Row]:
            nonlocal generator
            generator = generator if self._seed is None else np.random.default_rng(self._seed)
            rows = child()
            waiting = list(islice(rows, self._size))
            while waiting:
                place = int(generator.integers(len(waiting)))
                waiting[place], waiting[-1] = waiting[-1], waiting[place]
                yield waiting.pop()
                waiting += islice(rows, 1)

        return next_epoch


class Repeated(Node):
    """Repeat the rows, several times or endlessly."""

    def __init__(self, child: Node, count: Any) -> None:
        super().__init__(child, child.names)
        self._count = -1 if count is None else count
        if not is_number(self._count, int) or (self._count < 1 and self._count != -1):
            text = "count should be either -1 or positive integer, range[1, INT32_MAX]"
            refuse(ValueError if is_number(self._count, int) else TypeError, f"{text}, but got {count}.")
        self._rows = child.start

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()

        def next_epoch() -> Iterator[Row]:
            times = 0
            while times != self._count:
                times += 1
                yield from child()

        return next_epoch

    def size(self) -> int:
        """Return the number of rows in an epoch; if it has no end, the number in one repetition."""
        return super().size() * max(self._count, 1)

    def repeat_count(self) -> int:
        """Return how many times the rows are repeated."""
        return int(self._count)


class Skipped(Node):
    """Skip the first rows."""

    def __init__(self, child: Node, count: Any) -> None:
        super().__init__(child, child.names)
        if not is_number(count, int):
            refuse(
                TypeError, f"Argument count with value {count} is not of type [<class 'int'>], but got {type(count)}."
            )
        require_within("count", count, 0)
        self._count, self._rows = count, child.start

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()
        return lambda: islice(child(), self._count, None)

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return int(max(super().size() - self._count, 0))


class Taken(Node):
    """Take the first rows."""

    def __init__(self, child: Node, count: Any) -> None:
        super().__init__(child, child.names)
        if not is_number(count, int) or (count < 1 and count != -1):
            text = "count should be either -1 or within the required interval of (0, 2147483647]"
            refuse(ValueError if is_number(count, int) else TypeError, f"{text}, got {count}.")
        self._count, self._rows = None if count == -1 else count, child.start

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()
        return lambda: islice(child(), self._count)

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return min(super().size(), self._count or super().size())


class Filtered(Node):
    """Keep the rows for which a function returns true."""

    def __init__(self, child: Node, predicate: Any, input_columns: list[str]) -> None:
        super().__init__(child, child.names)
        if not callable(predicate):
            refuse(TypeError, "Predicate should be a Python function or a callable Python object.")
        require_columns(input_columns, child.names)
        self._predicate, self._rows = predicate, child.start
        self._places = [child.names.index(name) for name in input_columns or child.names]

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()
        return lambda: (row for row in child() if self._predicate(*(row[place] for place in self._places)))

    def size(self) -> int:
        """Return the number of rows, by reading them all."""
        return sum(1 for _ in self.start()())


class Projected(Node):
    """Keep some of the columns."""

    def __init__(self, child: Node, columns: list[str]) -> None:
        require_columns(columns, child.names)
        super().__init__(child, columns)
        self._rows, self._places = child.start, [child.names.index(name) for name in columns]

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        child = self._rows()
        return lambda: (tuple(row[place] for place in self._places) for row in child())


class Renamed(Node):
    """Rename columns."""

    def __init__(self, child: Node, before: list[str], after: list[str]) -> None:
        require_columns(before, child.names)
        if len(before) != len(after):
            refuse(
                ValueError,
                f"Number of input_columns should be {len(after)}, as of output_columns, but got {len(before)}",
            )
        names = dict(zip(before, after, strict=True))
        super().__init__(child, [names.get(name, name) for name in child.names])
        self.start = child.start  # type: ignore[method-assign]


class Zipped(Node):
    """Join the columns of several nodes."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes[0], [name for node in nodes for name in node.names])
        if len(set(self.names)) != len(self.names):
            refuse(RuntimeError, f"zip: the datasets have a column of the same name: {self.names}")
        self._nodes = nodes

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        children = [node.start() for node in self._nodes]
        return lambda: (tuple(chain(*rows)) for rows in zip(*(child() for child in children), strict=False))

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return min(node.size() for node in self._nodes)


class Concatenated(Node):
    """Yield the rows of several nodes, one node after the other."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes[0], nodes[0].names)
        for node in nodes:
            if node.names != self.names:
                refuse(RuntimeError, f"concat: the datasets have other columns: {self.names} and {node.names}")
        self._nodes = nodes

    def start(self) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        children = [node.start() for node in self._nodes]
        return lambda: chain.from_iterable(child() for child in children)

    def size(self) -> int:
        """Return the number of rows in an epoch."""
        return sum(node.size() for node in self._nodes)


def require_within(name: str, value: int, least: int) -> None:
    """Refuse a number below ``least``, or above the greatest 32-bit integer."""
    if not least <= value <= 2**31 - 1:
        refuse(
            ValueError, f"Input {name} is not within the required interval of [{least}, 2147483647], but got {value}."
        )
