"""The parts of a dataset that ``Dataset.split`` makes (source: MindSpore 2.10.0)."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import is_number
from collshim.mindspore.dataset.core import config
from collshim.mindspore.dataset.engine import random_order
from collshim.mindspore.dataset.engine.nodes import Shuffled, Skipped, Taken
from collshim.mindspore.dataset.engine.samplers import BuiltinSampler, DistributedSampler, Epochs
from collshim.mindspore.dataset.engine.sources import Node, Sampled

__all__ = ["parts"]


class _Part(BuiltinSampler):
    """Some of the rows that another sampler chooses; with a seed, in an order that is the same in all epochs."""

    stays = True

    def __init__(self, sampler: BuiltinSampler, first: int, count: int, seed: int | None) -> None:
        super().__init__()
        self._sampler, self._first, self._count, self._seed = sampler, first, count, seed

    def epochs(self, length: int) -> Epochs:
        """Return a function that returns the rows of the next epoch."""
        chosen, order = self._sampler.chosen(length), list(range(self._sampler.total(length)))
        if self._seed is not None:
            random_order.shuffle(order, self._seed)
        places = order[self._first : self._first + self._count]

        def next_epoch() -> list[int]:
            numbers = chosen()
            return [numbers[place] for place in places]

        return next_epoch

    def count(self, length: int) -> int:
        """Return the number of rows in an epoch."""
        return self._count


def parts(node: Node, sizes: Any, randomize: Any) -> list[Node]:
    """Return nodes that divide a node's rows; see ``Dataset.split``."""
    if not isinstance(randomize, bool):
        refuse(TypeError, f"Argument randomize with value {randomize} is not of type [<class 'bool'>]")
    _require_sizes(sizes)
    if isinstance(node, Sampled) and isinstance(node.sampler, DistributedSampler):
        refuse(RuntimeError, "split: the dataset should not be sharded before: shard its parts")
    counts = _counts(sizes, node.size())
    seed = config.seed_of_sampler() if randomize else None
    pairs = zip(accumulate([0, *counts[:-1]]), counts, strict=True)
    if isinstance(node, Sampled):
        return [node.with_sampler(_Part(node.sampler, first, count, seed)) for first, count in pairs]
    mixed = node if seed is None else Shuffled(node, max(node.size(), 2), seed)
    return [Taken(Skipped(mixed, first), count) for first, count in pairs]


def _require_sizes(sizes: Any) -> None:
    if not isinstance(sizes, list):
        refuse(TypeError, f"Argument sizes with value {sizes} is not of type [<class 'list'>], but got {type(sizes)}.")
    if not sizes:
        refuse(ValueError, "split: sizes should have a size, but got an empty list")
    if all(is_number(size, int) for size in sizes):
        if min(sizes) <= 0:
            refuse(ValueError, f"split: sizes should be positive, but got {sizes}")
    elif not all(isinstance(size, float) for size in sizes):
        refuse(ValueError, f"split: sizes should be all integers or all floats, but got {sizes}")
    elif not all(0 < size <= 1 for size in sizes) or abs(sum(sizes) - 1) > 1e-9:
        refuse(ValueError, f"split: fractions in sizes should be positive and sum up to 1, but got {sizes}")


def _counts(sizes: list[Any], rows: int) -> list[int]:
    counts = [round(size * rows) if isinstance(size, float) else size for size in sizes]
    if isinstance(sizes[0], int):
        if sum(counts) != rows:
            refuse(RuntimeError, f"split: the sum of the sizes is {sum(counts)}, and the dataset has {rows} rows")
        return counts
    if 0 in counts:
        refuse(RuntimeError, f"split: the fraction {sizes[counts.index(0)]} is too small for {rows} rows")
    counts[0] += max(rows - sum(counts), 0)
    for place, size in enumerate(counts):
        counts[place] -= min(max(sum(counts) - rows, 0), 1, size - 1)
    return counts
