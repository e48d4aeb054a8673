"""Contenders in turns: what is timed, how often, and how the times are reported."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Contender = Callable[[], Any]

Samples = dict[str, list[float]]
"""Seconds of each repetition, by contender; the n-th of all belong together."""

Cells = dict[int, Samples]
"""The same by bytes that each rank gives."""

DEADLINE = 600.0
"""The limit in seconds of one world."""

SIZES = {
    "4 B": 4,
    "64 B": 64,
    "4 KB": 4 << 10,
    "64 KB": 64 << 10,
    "1 MB": 1 << 20,
    "16 MB": 16 << 20,
    "64 MB": 64 << 20,
}
"""Bytes that each rank gives, by their name in a table."""

MARGIN = 0.05
"""The share of a median that always counts as noise."""

CHANCE = 0.01
"""The probability that chance alone calls a contender slower."""


class Figure(NamedTuple):
    """A contender's reported times, in microseconds."""

    median: float
    tenth: float

    def __str__(self) -> str:
        return f"{shown(self.median)} ({shown(self.tenth)})"


def shown(microseconds: float) -> str:
    """Format a number with its significant digits."""
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:.1f}"


def in_turns(contenders: Mapping[str, Contender], repeats: int, barrier: Contender) -> Samples:
    """Return this rank's times. Each repetition starts with another contender, each call with an untimed barrier.

    So disturbances affect all contenders equally, and none finds another's data in the cache more often.
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
    """Return the longest time of any rank per repetition: a call ends when its last rank is done."""
    return {name: [max(times) for times in zip(*(rank[name] for rank in ranks), strict=True)] for name in ranks[0]}


def concatenate(blocks: Sequence[Samples]) -> Samples:
    """Concatenate the repetitions of several blocks."""
    return {name: [seconds for block in blocks for seconds in block[name]] for name in blocks[0]}


def figures(samples: Samples) -> dict[str, Figure]:
    """Return median and tenth percentile of every contender."""
    return {name: Figure(statistics.median(times) * 1e6, tenth(times) * 1e6) for name, times in samples.items()}


def tenth(times: Sequence[float]) -> float:
    """Return the tenth percentile."""
    return sorted(times)[len(times) // 10]


def ratio(samples: Samples, name: str, other: str) -> float:
    """Return the ratio of the medians of ``name`` and ``other``."""
    return statistics.median(samples[name]) / statistics.median(samples[other])


def ratio_of_tenths(samples: Samples, name: str, other: str) -> float:
    """Return the ratio of their tenth percentiles, which depend less on the machine."""
    return tenth(samples[name]) / tenth(samples[other])


def slower_beyond_noise(samples: Samples, name: str, other: str) -> bool:
    """Return whether ``name`` is slower than ``other`` by its median and in too many repetitions for chance.

    The second is a one-sided sign test on pairs of repetitions, which assumes nothing about their spread.
    """
    pairs = [(mine, its) for mine, its in zip(samples[name], samples[other], strict=True) if mine != its]
    losses = sum(mine > its for mine, its in pairs)
    by_chance = sum(math.comb(len(pairs), count) for count in range(losses, len(pairs) + 1)) / 2 ** len(pairs)
    return ratio(samples, name, other) > 1 + MARGIN and by_chance < CHANCE
