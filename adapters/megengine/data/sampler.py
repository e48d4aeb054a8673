"""Samplers: the indices of a rank's batches (source: MegEngine 1.13.0, ``megengine.data.sampler``)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from collshim.errors import ArgumentValueError, also
from collshim.megengine.distributed.group import get_rank, get_world_size, is_distributed

__all__ = [
    "Infinite",
    "MapSampler",
    "RandomSampler",
    "ReplacementSampler",
    "Sampler",
    "SequentialSampler",
    "StreamSampler",
]


class Sampler(ABC):
    """The base class of samplers."""

    @abstractmethod
    def __init__(self) -> None: ...


class MapSampler(Sampler):
    """The base class of samplers that divide a dataset's indices among ranks, and each rank's indices into batches.

    Rank r's indices are every ``world_size``-th one, starting with number r. If the indices do not divide evenly, the
    first ones are repeated at the end, so that every rank has the same number.

    Args:
        dataset: the dataset, which must have a length.
        batch_size: the number of indices in a batch.
        drop_last: whether to drop a last batch that is not full.
        num_samples: the number of samples of all ranks together; None for the dataset's length.
        world_size: the number of ranks; None for the number in the process group.
        rank: this rank's number; None for its number in the process group.
        seed: the seed of the order. None means 0 if there are several ranks, so that all use the same seed, and a
            random seed otherwise.

    Raises:
        ValueError: ``batch_size`` or ``num_samples`` is not a positive integer, ``drop_last`` is not a bool, or a rank
            has fewer samples than a batch.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        drop_last: bool = False,
        num_samples: int | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ArgumentValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ArgumentValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ArgumentValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        self.batch_size, self.dataset, self.drop_last = batch_size, dataset, drop_last
        self.world_size = (get_world_size() if is_distributed() else 1) if world_size is None else world_size
        self.rank = (get_rank() if is_distributed() else 0) if rank is None else rank
        self.num_samples = math.ceil((len(dataset) if num_samples is None else num_samples) / self.world_size)
        if self.num_samples < batch_size:
            raise ArgumentValueError(
                "num_samples should be greater than batch_size, "
                f"but got num_samples={self.num_samples} and batch_size={batch_size}"
            )
        self.rng = np.random.RandomState(0 if seed is None and self.world_size > 1 else seed)

    def __iter__(self) -> Iterator[list[Any]]:
        return self.batch()

    def __len__(self) -> int:
        return self.num_samples // self.batch_size if self.drop_last else math.ceil(self.num_samples / self.batch_size)

    def sample(self) -> Iterable[Any]:
        """Return the indices of all ranks; subclasses implement this."""
        raise NotImplementedError

    def scatter(self, indices: list[Any]) -> list[Any]:
        """Return this rank's part of the indices of all ranks.

        Raises:
            AssertionError: the number of indices is not ``num_samples``.
        """
        total = self.num_samples * self.world_size
        indices = indices + indices[: total - len(indices)]
        if len(indices) != total:
            raise also(ArgumentValueError, AssertionError)(
                f"sample() and the repeated ones are {len(indices)} indices, should be {total}, which is "
                f"{self.num_samples} for each of {self.world_size} ranks"
            )
        return indices[self.rank : total : self.world_size]

    def batch(self) -> Iterator[list[Any]]:
        """Yield the indices of this rank's batches."""
        indices = list(self.sample())
        if self.world_size > 1:
            indices = self.scatter(indices)
        for start in range(0, len(indices), self.batch_size):
            batch = indices[start : start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


class StreamSampler(Sampler):
    """A sampler for streams; every rank reads its entire ``StreamDataset``.

    Args:
        batch_size: the number of samples in a batch.
    """

    def __init__(self, batch_size: int = 1) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[list[int]]:
        return self.batch()

    def batch(self) -> Iterator[list[int]]:
        """Yield the numbers of the samples in each batch, endlessly."""
        numbers = iter(self.sample())
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size:
                yield batch

    def sample(self) -> Iterable[int]:
        """Return the numbers of the samples."""
        return count()


class SequentialSampler(MapSampler):
    """A sampler of indices in order.

    Args:
        dataset: the dataset.
        batch_size: as in ``MapSampler``, like ``drop_last``, ``world_size`` and ``rank``.
        indices: the indices to distribute; all of the dataset's for None. ValueError if they are not a sequence.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        drop_last: bool = False,
        indices: Sequence[Any] | None = None,
        world_size: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, None, world_size, rank)
        self.indices = _sequence("indices", indices)

    def sample(self) -> Iterable[Any]:
        """Return the indices of all ranks."""
        return range(len(self.dataset)) if self.indices is None else self.indices


class RandomSampler(MapSampler):
    """A sampler of indices in random order, drawn for each epoch by NumPy, so that a seed yields MegEngine's order.

    Args:
        dataset: the dataset.
        batch_size: as in ``MapSampler``, like ``drop_last``, ``world_size``, ``rank`` and ``seed``.
        indices: the indices to distribute; all of the dataset's for None. ValueError if they are not a sequence.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        drop_last: bool = False,
        indices: Sequence[Any] | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, None, world_size, rank, seed)
        self.indices = _sequence("indices", indices)

    def sample(self) -> list[Any]:
        """Return the indices of all ranks in this epoch's order."""
        found: list[Any] = self.rng.permutation(len(self.dataset) if self.indices is None else self.indices).tolist()
        return found


class ReplacementSampler(MapSampler):
    """A sampler of indices drawn with replacement.

    Args:
        dataset: the dataset.
        batch_size: as in ``MapSampler``, like ``drop_last``, ``num_samples``, ``world_size``, ``rank`` and ``seed``.
        weights: a weight for each index, with any sum; equal weights for None. ValueError if it is not a sequence of
            the dataset's length.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        drop_last: bool = False,
        num_samples: int | None = None,
        weights: Sequence[float] | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, num_samples, world_size, rank, seed)
        given = _sequence("weights", weights)
        if given is not None and len(given) != len(dataset):
            raise ArgumentValueError(f"len(dataset)={len(dataset)} should be equal to len(weights)={len(given)}")
        self.weights = None if given is None else np.array(given) / sum(given)

    def sample(self) -> list[int]:
        """Return the indices of all ranks."""
        size = self.num_samples * self.world_size
        found: list[int] = self.rng.choice(len(self.dataset), size=size, replace=True, p=self.weights).tolist()
        return found


class Infinite(MapSampler):
    """Repeats another sampler's batches endlessly, epoch after epoch; other attributes are those of that sampler.

    Args:
        sampler: the sampler to repeat.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.sampler_iter = iter(sampler)

    def sample(self) -> Iterable[Any]:
        """Raise NotImplementedError, as in MegEngine: call ``sample`` of the sampler itself."""
        raise NotImplementedError("sample method not supported in Infinite")

    def __iter__(self) -> Infinite:
        return self

    def __next__(self) -> list[Any]:
        try:
            return next(self.sampler_iter)
        except StopIteration:
            self.sampler_iter = iter(self.sampler)
            return next(self.sampler_iter)

    def __len__(self) -> int:
        return int(np.iinfo(np.int64).max)

    def __getattr__(self, name: str) -> Any:
        if name == "sampler":  # not set yet, for example while the object is copied
            raise AttributeError(name)
        return getattr(self.sampler, name)


def _sequence(name: str, given: Any) -> Any:
    if given is not None and not isinstance(given, Sequence):
        raise ArgumentValueError(f"{name} should be None or a sequence, but got {name}={given}")
    return given
