"""Samplers of ``mindspore.dataset`` (source: MindSpore 2.10.0): which rows an epoch has, and in which order.

Every sampler has the same order as MindSpore's, even when it shuffles, if a seed was set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.core import config
from collshim.mindspore.dataset.engine import random_order

__all__ = [
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Shuffle",
    "SubsetRandomSampler",
    "SubsetSampler",
    "select_sampler",
]


class Shuffle(str, Enum):
    """Ways to shuffle; these samplers accept only GLOBAL, which means True."""

    GLOBAL = "global"
    PARTIAL = "partial"
    ADAPTIVE = "adaptive"
    FILES = "files"
    INFILE = "infile"
    FALSE = "false"


Epochs = Callable[[], list[int]]
"""A function that returns the rows of the next epoch."""


class BuiltinSampler:
    """A choice of rows of a dataset.

    Args:
        num_samples: the maximum number of rows; None for all.

    Raises:
        TypeError: ``num_samples`` is not an int.
        ValueError: ``num_samples`` is negative.
    """

    def __init__(self, num_samples: int | None = None) -> None:
        if num_samples is not None and not is_number(num_samples, int):
            refuse(TypeError, f"num_samples must be integer but was: {num_samples}.")
        if num_samples is not None and num_samples < 0:
            refuse(ValueError, f"num_samples should be a positive integer value, but got num_samples: {num_samples}.")
        self.num_samples = num_samples or None
        self.child_sampler: BuiltinSampler | None = None

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Let another sampler choose rows first; this one then chooses among those.

        Raises:
            AttributeError: ``sampler`` is not a sampler.
            RuntimeError: there is a child already.
        """
        if not isinstance(sampler, BuiltinSampler):
            refuse(AttributeError, f"a child sampler should be a sampler, but got {type(sampler)}")
        if self.child_sampler is not None:
            refuse(RuntimeError, "Cannot add child sampler, this sampler already has a child.")
        self.child_sampler = sampler

    def get_child(self) -> BuiltinSampler | None:
        """Return the sampler that chooses rows before this one."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Return the maximum number of rows, of this sampler and its child; None if there is none."""
        child = None if self.child_sampler is None else self.child_sampler.get_num_samples()
        return min((number for number in (self.num_samples, child) if number is not None), default=None)

    shuffles = shards = stays = False

    def is_shuffled(self) -> bool:
        """Return whether this sampler or its child shuffles."""
        return self.shuffles or (self.child_sampler is not None and self.child_sampler.is_shuffled())

    def is_sharded(self) -> bool:
        """Return whether this sampler or its child divides the rows into shards."""
        return self.shards or (self.child_sampler is not None and self.child_sampler.is_sharded())

    def chosen(self, length: int) -> Epochs:
        """Return ``epochs``, of the rows that the child chooses if there is one."""
        if self.child_sampler is None:
            return self.epochs(length)
        inner, own = self.child_sampler.chosen(length), self.epochs(self.child_sampler.total(length))

        def next_epoch() -> list[int]:
            numbers = inner()
            return [numbers[place] for place in own()]

        return next_epoch

    def total(self, length: int) -> int:
        """Return ``count``, of the rows that the child chooses if there is one."""
        return self.count(length if self.child_sampler is None else self.child_sampler.total(length))

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the row indices of the next epoch, for a dataset of ``length`` rows."""
        raise NotImplementedError(f"{type(self).__name__}.epochs")

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        return min(length, self.num_samples or length)


class SequentialSampler(BuiltinSampler):
    """The rows in order, from ``start_index``."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        if start_index is not None and not is_number(start_index, int):
            refuse(TypeError, f"start_index must be integer but was: {start_index}.")
        self.start_index = start_index or 0
        if self.start_index < 0:
            refuse(ValueError, f"start_index should not be negative, but got {start_index}.")

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        first = self.start_index
        return lambda: list(range(first, first + self.count(length)))

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        return max(min(length - self.start_index, self.num_samples or length), 0)


class RandomSampler(BuiltinSampler):
    """The rows in a random order that differs from epoch to epoch, with or without replacement."""

    shuffles = True

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Any = Shuffle.GLOBAL
    ) -> None:
        super().__init__(num_samples)
        if not _shuffles("RandomSampler", shuffle):
            refuse(ValueError, "RandomSampler: shuffle should be Shuffle.GLOBAL: SequentialSampler keeps the order")
        if not isinstance(replacement, bool):
            refuse(TypeError, f"replacement must be a boolean value but was: {replacement}.")
        self.replacement = replacement

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        seed, order = config.seed_of_sampler() - 1, list(range(length))

        def next_epoch() -> list[int]:
            nonlocal seed
            seed = (seed + 1) % 2**32
            if self.replacement:
                return random_order.drawn(self.count(length), length, seed)
            random_order.shuffle(order, seed)
            return order[: self.count(length)]

        return next_epoch


class DistributedSampler(BuiltinSampler):
    """Every ``num_shards``-th row, starting from row ``shard_id``; shorter shards are filled up with the first rows.

    Args:
        num_shards: the number of shards.
        shard_id: this shard's index, from 0.
        shuffle: whether the rows are shuffled first: in the same way in all shards, and differently in each epoch.
        num_samples: the maximum number of rows in this shard.
        offset: the shard that has the first row; then shorter shards are not filled up. -1: shard 0, with filling.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
        RuntimeError: ``offset`` is above ``num_shards``.
    """

    shards = True

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: Any = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        super().__init__(num_samples)
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id), ("offset", offset)):
            if not is_number(value, int):
                refuse(TypeError, f"{name} must be integer but was: {value}.")
        shuffles = _shuffles("DistributedSampler", shuffle)
        if num_shards <= 0 or not 0 <= shard_id < num_shards:
            text = f"but got shard_id: {shard_id}, num_shards: {num_shards}"
            refuse(ValueError, f"shard_id should be from 0 to num_shards - 1, {text}")
        if offset > num_shards:
            text = f"should be no more than num_shards: {num_shards}, but got offset: {offset}"
            refuse(RuntimeError, f"DistributedSampler: offset {text}")
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffles, offset
        self.shuffles = shuffles
        self.seed = config.get_seed()

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        seed, count, order, first = self.seed, self.count(length), list(range(length)), self._first()

        def next_epoch() -> list[int]:
            nonlocal seed
            seed += 1
            if self.shuffle:
                random_order.shuffle(order, seed % 2**32)
            return [order[(first + number * self.num_shards) % length] for number in range(count)]

        return next_epoch

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        filled = 0 if self.offset == -1 else self._first()
        return min(math.ceil((length - filled) / self.num_shards), self.num_samples or length)

    def _first(self) -> int:
        """Return the place of this shard's first row."""
        return (self.shard_id - max(self.offset, 0)) % self.num_shards


class SubsetSampler(BuiltinSampler):
    """The rows with these indices, in this order."""

    def __init__(self, indices: Any, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        found = list(indices) if isinstance(indices, Iterable) else [indices]
        if not all(is_number(index, int, np.integer) for index in found):
            refuse(TypeError, f"SubsetSampler: Type of indices element must be int, but got {found}.")
        self.indices = [int(index) for index in found]

    def get_num_samples(self) -> int | None:
        """Return the number of indices, or the maximum number of rows if it is less."""
        return min(self.count(len(self.indices)), super().get_num_samples() or len(self.indices))

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        for index in self.indices:
            if not 0 <= index < length:
                refuse(RuntimeError, f"Sampler: the index {index} is out of range: the dataset has {length} rows")
        return self._next

    def _next(self) -> list[int]:
        return self.indices[: self.count(len(self.indices))]

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        return min(len(self.indices), self.num_samples or len(self.indices))


class SubsetRandomSampler(SubsetSampler):
    """The rows with these indices, in a random order."""

    shuffles = True

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        super().epochs(length)
        seed, order = config.seed_of_sampler(), list(self.indices)

        def next_epoch() -> list[int]:
            random_order.shuffle(order, seed)
            return order[: self.count(length)]

        return next_epoch


class Sampler(BuiltinSampler):
    """The base of a user's sampler, whose ``__iter__`` yields row indices; ``dataset_size`` is set before."""

    dataset_size = 0

    def __iter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__iter__")

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        self.dataset_size = length
        return lambda: [int(index) for index in self][: self.num_samples or None]

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        return len(self.epochs(length)())


class _Iterated(Sampler):
    """A sampler from an iterable of row indices."""

    def __init__(self, indices: Iterable[int], num_samples: int | None) -> None:
        super().__init__(num_samples)
        self._indices = indices

    def __iter__(self) -> Any:
        return iter(self._indices)


def select_sampler(
    num_samples: int | None, sampler: Any, shuffle: bool | None, num_shards: int | None, shard_id: int | None
) -> BuiltinSampler:
    """Return the sampler for a dataset's arguments; ``shuffle=None`` shuffles.

    Raises:
        TypeError: the sampler is neither a BuiltinSampler nor row indices.
        ValueError: there is a sampler, and another argument that also chooses rows.
    """
    if sampler is None:
        shuffles = shuffle is None or shuffle
        if num_shards is not None and shard_id is not None:
            return DistributedSampler(num_shards, shard_id, shuffles, num_samples)
        return RandomSampler(num_samples is not None, num_samples) if shuffles else SequentialSampler(None, num_samples)
    if isinstance(sampler, BuiltinSampler):
        if any(argument is not None for argument in (num_samples, num_shards, shard_id, shuffle)):
            text = f"num_samples: {num_samples}, num_shards: {num_shards}, shard_id: {shard_id}, shuffle: {shuffle}"
            refuse(ValueError, f"Conflicting arguments during sampler assignments. {text}.")
        return sampler
    if isinstance(sampler, Sequence | np.ndarray) and not isinstance(sampler, str):
        return SubsetSampler(sampler, num_samples)
    if isinstance(sampler, Iterable) and not isinstance(sampler, str):
        return _Iterated(sampler, num_samples)
    if is_number(sampler, int):
        return SubsetSampler([sampler])
    refuse(TypeError, f"Unsupported sampler object of type ({type(sampler)})")


def _shuffles(of: str, shuffle: Any) -> bool:
    if isinstance(shuffle, bool) or shuffle in (Shuffle.GLOBAL, Shuffle.FALSE):
        return shuffle is True or shuffle == Shuffle.GLOBAL
    if not isinstance(shuffle, Shuffle):
        refuse(TypeError, f"shuffle must be a boolean value or valid shuffle mode but was: {shuffle}.")
    refuse(NotImplementedError, f"{of}: shuffle is {shuffle}, should be Shuffle.GLOBAL or a bool")
