"""``NumpySlicesDataset`` and ``GeneratorDataset`` of ``mindspore.dataset`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Iterable
from types import GeneratorType
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.common.dtype import dtype_to_nptype, torch_dtype
from collshim.mindspore.dataset.engine import sources
from collshim.mindspore.dataset.engine.mappable import MappableDataset
from collshim.mindspore.dataset.engine.samplers import BuiltinSampler, select_sampler

__all__ = ["GeneratorDataset", "NumpySlicesDataset", "chosen_sampler"]


class GeneratorDataset(MappableDataset):
    """The rows of a Python object.

    Args:
        source: an object with ``__getitem__`` and ``__len__``, whose rows can be shuffled and divided into shards; or
            an iterable, or a function that returns an iterator, whose rows keep their order.
        column_names: a name or a list of names.
        column_types: a dtype for each column, to which values are converted; None keeps the values' own dtypes.
        schema: must be None.
        num_samples: the maximum number of rows.
        num_parallel_workers: has no effect; neither have ``python_multiprocessing`` and ``max_rowsize``.
        shuffle: whether the rows are shuffled; None shuffles them if ``source`` has indices.
        sampler: a sampler, or the indices of the rows.
        num_shards: the number of shards; see DistributedSampler.
        shard_id: this shard's index.
        batch_sampler: must be None; so must ``collate_fn``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there are no names, a number is out of range, arguments contradict each other, or a source without
            indices should be sharded or sampled.
        NotImplementedError: an argument that must be None is not.
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Any = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: Any = None,
        batch_sampler: Any = None,
        collate_fn: Any = None,
    ) -> None:
        _require_workers(num_parallel_workers, python_multiprocessing, max_rowsize)
        for name, value in (("schema", schema), ("batch_sampler", batch_sampler), ("collate_fn", collate_fn)):
            if value is not None:
                refuse(NotImplementedError, f"GeneratorDataset: {name} is not supported: should be None")
        if column_names is None:
            refuse(ValueError, "Neither columns_names nor schema are provided.")
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        self.source: Any = list(source) if isinstance(source, zip) else source
        if not callable(self.source) and not hasattr(self.source, "__getitem__") and not _iterates(self.source):
            text = "function of GeneratorDataset should be callable, iterable or random accessible"
            refuse(TypeError, f"Input `source` {text}, but got {type(source)}")
        self._types = None if column_types is None else [dtype_to_nptype(torch_dtype(kind)) for kind in column_types]
        if hasattr(self.source, "__getitem__"):
            chosen = chosen_sampler("GeneratorDataset", num_samples, sampler, shuffle, num_shards, shard_id)
            super().__init__(self._numbered(names, chosen))
        else:
            for name, value in (("sampler", sampler), ("num_shards", num_shards), ("shard_id", shard_id)):
                if value is not None:
                    refuse(ValueError, f"{name} is not supported if source does not have attribute '__getitem__'.")
            super().__init__(sources.Iterated(names, self._begin, num_samples))

    def _numbered(self, names: list[str], sampler: BuiltinSampler) -> sources.Node:
        if not hasattr(self.source, "__len__"):
            text = "Attempt to construct a random access dataset, '__len__' method is required!"
            refuse(RuntimeError, text)
        return sources.Sampled(names, lambda number: self._typed(self.source[number]), len(self.source), sampler)

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return a row of the first epoch, with the values of ``source``.

        Raises:
            TypeError: the index is not an int.
            RuntimeError: the index is out of range, or ``source`` has no indices.
        """
        if not isinstance(self._node, sources.Sampled):
            refuse(RuntimeError, "Dataset don't support randomized access.")
        if not is_number(index, int):
            refuse(TypeError, f"Argument index with value {index} is not of type [<class 'int'>]")
        if self._numbers is None:
            self._numbers = self._node.numbers()
        if not 0 <= index < len(self._numbers):
            refuse(RuntimeError, f"the index {index} is out of range: an epoch has {len(self._numbers)} rows")
        row = self.source[self._numbers[index]]
        return row if isinstance(row, tuple) else (row,)

    def _typed(self, row: Any) -> Any:
        if self._types is None:
            return row
        values = row if isinstance(row, tuple | list) else (row,)
        arrays = sources.as_row(values, ["" for _ in values])
        return tuple(array.astype(kind) for array, kind in zip(arrays, self._types, strict=True))

    def _begin(self) -> Iterable[Any]:
        if isinstance(self.source, GeneratorType):
            refuse(TypeError, "GeneratorDataset: a generator gives its rows once: pass the function that makes it")
        rows = self.source if _iterates(self.source) else self.source()
        return map(self._typed, rows)


def _iterates(source: Any) -> bool:
    return hasattr(source, "__iter__") or hasattr(source, "__next__")


class NumpySlicesDataset(GeneratorDataset):
    """The slices of arrays or lists along their first axis.

    Args:
        data: one array or list; a tuple of them, one for each column; or a dict of them by column.
        column_names: the columns' names; None for the dict's keys, or "column_0" and so on. For the other arguments,
            see GeneratorDataset.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there is no data, the columns have different lengths, a number is out of range, or arguments
            contradict each other.
    """

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        if hasattr(data, "__len__") and len(data) == 0:
            refuse(ValueError, "NumpySlicesDataset: data is empty, should have at least one row")
        columns, names = _columns(data)
        if len({len(column) for column in columns}) > 1:
            refuse(ValueError, f"Data length in each column is not equal: {[len(column) for column in columns]}.")
        own = [column_names] if isinstance(column_names, str) else column_names
        if own is not None and len(own) != len(columns):
            refuse(ValueError, f"Num of input column names is {len(own)}, but required is {len(columns)}.")
        source = _Slices(columns)
        sampling: Any = {"shuffle": shuffle, "sampler": sampler, "num_shards": num_shards, "shard_id": shard_id}
        super().__init__(source, own or names, num_samples=num_samples, **sampling)


class _Slices:
    """Columns, indexed by row."""

    def __init__(self, columns: tuple[Any, ...]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(column[index] for column in self._columns)


def _columns(data: Any) -> tuple[tuple[Any, ...], list[str]]:
    if isinstance(data, dict):
        return tuple(getattr(column, "values", column) for column in data.values()), list(data)
    if not hasattr(data, "__len__") or isinstance(data, str):
        text = f"should be list, tuple, dict or ndarray, but got {type(data)}"
        refuse(TypeError, f"Argument data {text}")
    columns = data if isinstance(data, tuple) else (data,)
    return columns, [f"column_{number}" for number in range(len(columns))]


def chosen_sampler(
    of: str, num_samples: Any, sampler: Any, shuffle: Any, num_shards: Any, shard_id: Any
) -> BuiltinSampler:
    """Return the sampler for a dataset's arguments, after checking them."""
    if shuffle is not None and not isinstance(shuffle, bool):
        refuse(TypeError, f"{of}: shuffle should be a bool or None, but got {shuffle!r}")
    _require_number(of, "num_samples", num_samples, 0)
    if num_shards is None and shard_id is None:
        return select_sampler(num_samples, sampler, shuffle, None, None)
    if num_shards is None or shard_id is None:
        refuse(ValueError, "num_shards and shard_id need to be passed in together.")
    _require_number(of, "num_shards", num_shards, 1)
    _require_number(of, "shard_id", shard_id, 0)
    if shard_id >= num_shards:
        refuse(ValueError, f"shard_id should be less than num_shards, but got {shard_id} and {num_shards}.")
    return select_sampler(num_samples, sampler, shuffle, num_shards, shard_id)


def _require_workers(workers: Any, processes: Any, longest: Any) -> None:
    """Refuse wrong types of the arguments that have no effect."""
    kinds: tuple[tuple[str, Any, tuple[type, ...]], ...] = (
        ("num_parallel_workers", workers, (int,)),
        ("python_multiprocessing", processes, (bool,)),
        ("max_rowsize", longest, (int, list)),
    )
    for name, value, known in kinds:
        if value is not None and not isinstance(value, known):
            text = f"is not of type {list(known)}, but got {type(value)}"
            refuse(TypeError, f"Argument {name} with value {value} {text}.")
    if workers is not None and workers < 1:
        refuse(ValueError, f"num_parallel_workers should be at least 1, but got {workers}")


def _require_number(of: str, name: str, value: Any, least: int) -> None:
    if value is None:
        return
    if not is_number(value, int):
        refuse(TypeError, f"{of}: Argument {name} with value {value} is not of type [<class 'int'>]")
    if not least <= value <= 2**31 - 1:
        refuse(
            ValueError, f"Input {name} is not within the required interval of [{least}, 2147483647], but got {value}."
        )
