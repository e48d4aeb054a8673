"""Contenders in turns: what is timed, how often, and what is said of the times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Contender = Callable[[], Any]

Samples = dict[str, list[float]]
"""Seconds that each repetition took, by contender; the n-th of all belong together."""

Cells = dict[int, Samples]
"""The same by bytes that each rank gives."""

DEADLINE = 600.0
"""Seconds that one world may take."""

SIZES = {
    "4 B": 4,
    "64 B": 64,
    "4 KB": 4 << 10,
    "64 KB": 64 << 10,
    "1 MB": 1 << 20,
    "16 MB": 16 << 20,
    "64 MB": 64 << 20,
}
"""Bytes that each rank gives, by the name that a table has for them."""

MARGIN = 0.05
"""Share of a median that is called noise, whatever else is known of it."""

CHANCE = 0.01
"""How often mere chance may call a contender slower that is not."""


class Figure(NamedTuple):
    """What is told of a contender, in microseconds."""

    median: float
    tenth: float

    def __str__(self) -> str:
        return f"{shown(self.median)} ({shown(self.tenth)})"


def shown(microseconds: float) -> str:
    """A number with as many digits as say something."""
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def in_turns(contenders: Mapping[str, Contender], repeats: int, barrier: Contender) -> Samples:
    """This rank's times. Each repetition starts with another contender, each call with a barrier, which is not timed.

    What disturbs one contender so disturbs all, and none finds another's data in the cache more often than the others.
    """
    names = list(contenders)
    for name in names:
        contenders[name]()
    times: Samples = {name: [] for name in names}
    for turn in range(repeats):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(_timed(contenders[name], barrier))
    return times


def _timed(contender: Contender, barrier: Contender) -> float:
    barrier()
    start = time.perf_counter()
    contender()
    return time.perf_counter() - start


def slowest(ranks: Sequence[Samples]) -> Samples:
    """A call is over when its last rank is done: per repetition the longest time of any rank."""
    return {name: [max(times) for times in zip(*(rank[name] for rank in ranks), strict=True)] for name in ranks[0]}


def joined(blocks: Sequence[Samples]) -> Samples:
    """The repetitions of several blocks behind each other."""
    return {name: [seconds for block in blocks for seconds in block[name]] for name in blocks[0]}


def figures(samples: Samples) -> dict[str, Figure]:
    """Median and tenth percentile of every contender."""
    return {name: Figure(statistics.median(times) * 1e6, tenth(times) * 1e6) for name, times in samples.items()}


def tenth(times: Sequence[float]) -> float:
    """The tenth percentile."""
    return sorted(times)[len(times) // 10]


def ratio(samples: Samples, name: str, other: str) -> float:
    """How many times as long ``name`` takes as ``other``, by their medians."""
    return statistics.median(samples[name]) / statistics.median(samples[other])


def ratio_of_tenths(samples: Samples, name: str, other: str) -> float:
    """The same by their tenth percentiles, which say less of the machine."""
    return tenth(samples[name]) / tenth(samples[other])


def slower_beyond_noise(samples: Samples, name: str, other: str) -> bool:
    """Whether ``name`` is slower than ``other`` by its median and in too many repetitions for chance.

    The second is a one-sided sign test, which takes the repetitions by pairs and nothing for granted of their spread.
    """
    pairs = [(mine, its) for mine, its in zip(samples[name], samples[other], strict=True) if mine != its]
    losses = sum(mine > its for mine, its in pairs)
    by_chance = sum(math.comb(len(pairs), count) for count in range(losses, len(pairs) + 1)) / 2 ** len(pairs)
    return ratio(samples, name, other) > 1 + MARGIN and by_chance < CHANCE
