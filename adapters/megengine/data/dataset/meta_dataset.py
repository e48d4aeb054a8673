"""Base classes of datasets (source: MegEngine 1.13.0, ``megengine.data.dataset.meta_dataset``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, NoReturn

from collshim.errors import ArgumentValueError, also

__all__ = ["ArrayDataset", "ConcatDataset", "Dataset", "StreamDataset"]


class Dataset(ABC):
    """The base class of datasets: a subclass implements ``__init__``, ``__getitem__`` and ``__len__``."""

    @abstractmethod
    def __init__(self) -> None: ...

    @abstractmethod
    def __getitem__(self, index: Any) -> Any: ...

    @abstractmethod
    def __len__(self) -> int: ...


class StreamDataset(Dataset):
    """The base class of datasets without a length: a subclass implements ``__init__`` and ``__iter__``."""

    @abstractmethod
    def __init__(self) -> None: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    def __getitem__(self, idx: Any) -> NoReturn:
        raise AssertionError("can not get item from StreamDataset by index")

    def __len__(self) -> NoReturn:
        raise AssertionError("StreamDataset does not have length")


class ArrayDataset(Dataset):
    """A dataset of parallel arrays; a sample is the tuple of their entries at an index.

    Args:
        arrays: arrays or lists of the same length. ValueError if the lengths differ.
    """

    def __init__(self, *arrays: Any) -> None:
        if not all(len(arrays[0]) == len(array) for array in arrays):
            raise ArgumentValueError(
                f"lengths of input arrays are inconsistent: {', '.join(str(len(array)) for array in arrays)}"
            )
        self.arrays = arrays

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])


class ConcatDataset(Dataset):
    """A concatenation of datasets.

    Args:
        datasets: at least one dataset. AssertionError if there is none, or for a ``StreamDataset``.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise also(ArgumentValueError, AssertionError)("datasets should not be an empty iterable")
        if any(isinstance(dataset, StreamDataset) for dataset in self.datasets):
            raise also(ArgumentValueError, AssertionError)("ConcatDataset does not support StreamDataset")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, idx: int) -> Any:
        if idx < -len(self):
            raise ArgumentValueError("absolute value of index should not exceed dataset length")
        place = idx + len(self) if idx < 0 else idx
        number = bisect_right(self.cumulative_sizes, place)
        return self.datasets[number][place - self.cumulative_sizes[number - 1] if number else place]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]
