"""``Dataset`` of ``mindspore.dataset`` (source: MindSpore 2.10.0): rows of NumPy arrays in named columns."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.engine import batching, nodes, sources
from collshim.mindspore.dataset.engine.iterators import DictIterator, TupleIterator
from collshim.mindspore.dataset.engine.parts import parts

__all__ = ["Dataset"]


class Dataset:
    """Rows in named columns. Every operation returns a new dataset; a loop over a dataset yields one epoch.

    Rows are computed when they are read, in the calling thread: numbers of workers have no effect.
    """

    _classes: int | None = None

    def __init__(self, node: sources.Node) -> None:
        self._node = node

    def _after(self, node: sources.Node) -> Dataset:
        made = Dataset(node)
        made._classes = self._classes
        return made

    def get_dataset_size(self) -> int:
        """Return the number of rows in an epoch; after ``batch``, the number of batches."""
        return self._node.size()

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch; 1 without ``batch``."""
        return self._node.batch_size()

    def get_repeat_count(self) -> int:
        """Return how many times the rows are repeated; 1 without ``repeat``."""
        return self._node.repeat_count()

    def get_col_names(self) -> list[str]:
        """Return the columns' names."""
        return list(self._node.names)

    def num_classes(self) -> int | None:
        """Return the number of classes of a well-known dataset; None for others."""
        return self._classes

    def get_class_indexing(self) -> dict[str, int]:
        """Return an empty dict: no dataset here has names of classes."""
        return {}

    @property
    def column_names(self) -> list[str]:
        """The columns' names."""
        return self.get_col_names()

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """Return the shapes of the first row's values."""
        return [list(array.shape) for array in self._first()]

    def output_types(self) -> list[np.dtype[Any]]:
        """Return the NumPy dtypes of the first row's values."""
        return [array.dtype for array in self._first()]

    def _first(self) -> sources.Row:
        return next(iter(self._node.start()()), ())

    def __len__(self) -> int:
        return self.get_dataset_size()

    def __iter__(self) -> Iterator[Any]:
        return self.create_tuple_iterator(num_epochs=1)

    def create_tuple_iterator(
        self, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> TupleIterator:
        """Return an iterator whose rows are lists of Tensors; with ``output_numpy``, of NumPy arrays.

        Each loop over it yields the next epoch: ``num_epochs`` in all, or endlessly if it is -1.

        Raises:
            ValueError: there is no such column, or ``num_epochs`` is neither -1 nor positive.
        """
        chosen = None if columns is None else _names(columns, "columns")
        sources.require_columns(chosen or [], self.get_col_names())
        return TupleIterator(self._node, chosen, _epochs(num_epochs), output_numpy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DictIterator:
        """Return an iterator whose rows are dicts, by column; otherwise like ``create_tuple_iterator``."""
        return DictIterator(self._node, _epochs(num_epochs), output_numpy)

    def batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Return batches of consecutive rows, stacked along a new first axis.

        Args:
            batch_size: the number of rows in a batch; or a function of a BatchInfo, which has ``get_batch_num`` and
                ``get_epoch_num``, that returns it.
            drop_remainder: whether a last batch with fewer rows is dropped.
            num_parallel_workers: has no effect.
            kwargs: ``per_batch_map``, a function of a list of arrays for each of ``input_columns``, or for all
                columns, and a BatchInfo; it returns a list for each of ``output_columns``, in a tuple.
                ``python_multiprocessing`` and ``max_rowsize`` have no effect.

        Raises:
            TypeError: ``batch_size`` is neither an int nor a function.
            ValueError: ``batch_size`` is not positive, there are columns without ``per_batch_map``, or a function has
                the wrong number of parameters.
            RuntimeError: there is no such column, or a function returned the wrong number of columns or rows.
        """
        own = ("per_batch_map", "input_columns", "output_columns")
        _require_known("batch", kwargs, (*own, "python_multiprocessing", "max_rowsize"))
        change, given, results = (kwargs.get(name) for name in own)
        if change is None and given is not None:
            refuse(ValueError, "batch: input_columns should be given only with per_batch_map")
        replacement = None
        if change is not None:
            columns = [[] if names is None else _names(names, "columns") for names in (given, results)]
            replacement = batching.Replacement(change, self.get_col_names(), *columns)
        return self._after(batching.Batch(self._node, batch_size, drop_remainder, replacement))

    def padded_batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, tuple[Any, Any]] | None = None,
    ) -> Dataset:
        """Return batches of consecutive rows, padded to one shape.

        Args:
            batch_size: see ``batch``.
            drop_remainder: whether a last batch with fewer rows is dropped.
            num_parallel_workers: has no effect.
            pad_info: for each column to be padded, the shape and the value. None for the shape, or for a length, means
                the greatest length in the batch; longer values are cut. An empty dict pads all columns with zeros;
                None pads no column.
        """
        return self._after(batching.Padded(self._node, batch_size, drop_remainder, pad_info))

    def split(self, sizes: list[int] | list[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Return datasets that divide the rows among them.

        Args:
            sizes: the numbers of rows, or the fractions of them.
            randomize: whether the rows are shuffled first, once; with or without a seed, no row is in two parts.

        Raises:
            TypeError: ``sizes`` is not a list, or ``randomize`` is not a bool.
            ValueError: a size is not positive, or the fractions do not sum up to 1.
            RuntimeError: the sizes do not sum up to the number of rows, a fraction is too small, or the dataset is
                sharded.
        """
        return tuple(map(self._with, parts(self._node, sizes, randomize)))

    def _with(self, node: sources.Node) -> Dataset:
        """Return a dataset of the same class if it has a source's rows, else after another step."""
        if not isinstance(node, sources.Sampled):
            return self._after(node)
        made = copy.copy(self)
        made._node = node
        return made

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return what a function returns for this dataset.

        Raises:
            TypeError: it is not a function, or it does not return a dataset.
        """
        found = apply_func(self) if callable(apply_func) else None
        if not isinstance(found, Dataset):
            refuse(TypeError, "apply: apply_func should be a function that returns a dataset")
        return found

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Return a dataset with operations applied to some columns.

        Args:
            operations: a function, or a list of functions that are called one after the other.
            input_columns: the columns whose values the first function takes; None for the first column.
            output_columns: the columns for the last function's results; None for ``input_columns``.
            num_parallel_workers: has no effect.
            kwargs: settings of performance, without effect; ``cache`` and ``callbacks`` are refused.

        Raises:
            ValueError: an operation is not callable, or there is no such column.
        """
        _require_known("map", kwargs, ("python_multiprocessing", "cache", "callbacks", "max_rowsize", "offload"))
        if kwargs.get("cache") is not None or kwargs.get("callbacks") is not None:
            refuse(NotImplementedError, "map: cache and callbacks are not supported: should be None")
        given = [] if input_columns is None else _names(input_columns, "input_columns")
        results = [] if output_columns is None else _names(output_columns, "output_columns")
        return self._after(nodes.Mapped(self._node, operations, given, results))

    def shuffle(self, buffer_size: int) -> Dataset:
        """Return the rows in a random order: each is drawn from a buffer of the next ``buffer_size`` rows.

        The order differs from epoch to epoch, and from MindSpore's.

        Raises:
            TypeError: ``buffer_size`` is not an int.
            ValueError: ``buffer_size`` is below 2.
        """
        return self._after(nodes.Shuffled(self._node, buffer_size))

    def repeat(self, count: int | None = None) -> Dataset:
        """Return the rows ``count`` times; without end if ``count`` is None or -1.

        Raises:
            ValueError: ``count`` is neither -1 nor positive.
        """
        return self._after(nodes.Repeated(self._node, count))

    def skip(self, count: int) -> Dataset:
        """Return the rows after the first ``count``.

        Raises:
            ValueError: ``count`` is negative.
        """
        return self._after(nodes.Skipped(self._node, count))

    def take(self, count: int = -1) -> Dataset:
        """Return the first ``count`` rows; all rows if ``count`` is -1.

        Raises:
            ValueError: ``count`` is neither -1 nor positive.
        """
        return self._after(nodes.Taken(self._node, count))

    def zip(self, datasets: Any) -> Dataset:
        """Return a dataset with the columns of this one and of others, and as many rows as the shortest has."""
        others = datasets if isinstance(datasets, tuple) else (datasets,)
        return self._after(nodes.Zipped([dataset._node for dataset in (self, *others)]))

    def concat(self, datasets: Any) -> Dataset:
        """Return the rows of this dataset, followed by the rows of others."""
        others = datasets if isinstance(datasets, list) else [datasets]
        return self._after(nodes.Concatenated([dataset._node for dataset in (self, *others)]))

    def __add__(self, datasets: Any) -> Dataset:
        return self.concat(datasets)

    def project(self, columns: Any) -> Dataset:
        """Return a dataset with only these columns, in this order."""
        return self._after(nodes.Projected(self._node, _names(columns, "columns")))

    def rename(self, input_columns: Any, output_columns: Any) -> Dataset:
        """Return a dataset with renamed columns."""
        before, after = _names(input_columns, "input_columns"), _names(output_columns, "output_columns")
        return self._after(nodes.Renamed(self._node, before, after))

    def filter(
        self, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None
    ) -> Dataset:
        """Return the rows for which ``predicate``, called with the values of ``input_columns`` or all, is true."""
        columns = [] if input_columns is None else _names(input_columns, "input_columns")
        return self._after(nodes.Filtered(self._node, predicate, columns))

    def reset(self) -> None:
        """Do nothing: each iterator begins with the first epoch."""


def _names(given: Any, what: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else [given]
    if not names or not all(isinstance(name, str) and name for name in names):
        refuse(TypeError if names else ValueError, f"{what} should be a name, or a list of names, but got {given!r}")
    if len(set(names)) != len(names):
        refuse(ValueError, f"{what} has a name twice: {names}")
    return names


def _require_known(of: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            refuse(TypeError, f"{of}() got an unexpected keyword argument {name!r}")


def _epochs(num_epochs: Any) -> int:
    if not is_number(num_epochs, int):
        refuse(TypeError, f"num_epochs should be an int, but got {type(num_epochs)}")
    if num_epochs == 0 or num_epochs < -1:
        refuse(ValueError, f"num_epochs should be either -1 or positive integer, but got {num_epochs}")
    return int(num_epochs)
