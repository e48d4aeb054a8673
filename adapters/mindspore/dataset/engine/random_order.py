"""The order in which MindSpore 2.10.0 shuffles: that of C++'s ``std::shuffle`` with ``std::mt19937``.

MindSpore is built with the standard library of GCC 7, which divides a 32-bit random number, and draws two positions
from one number if the length allows it. NumPy's RandomState has the same generator.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["drawn", "shuffle"]
_GREATEST = 2**32 - 1


def _numbers(seed: int) -> Iterator[int]:
    generator = np.random.RandomState(seed)  # std::mt19937
    while True:
        yield from generator.randint(0, 2**32, size=1024, dtype=np.uint32).tolist()


def _below(limit: int, numbers: Iterator[int]) -> int:
    """Return a number from 0 to ``limit - 1``, as std::uniform_int_distribution does."""
    divisor = _GREATEST // limit
    return next(number for number in numbers if number < limit * divisor) // divisor


def shuffle(values: list[int], seed: int) -> None:
    """Shuffle a list in place."""
    numbers, length = _numbers(seed), len(values)
    if length < 2:
        return
    if _GREATEST // length < length:
        for place in range(1, length):
            _swap(values, place, _below(place + 1, numbers))
        return
    place = 1
    if length % 2 == 0:
        _swap(values, 1, _below(2, numbers))
        place = 2
    while place < length:
        first, second = divmod(_below((place + 1) * (place + 2), numbers), place + 2)
        _swap(values, place, first)
        _swap(values, place + 1, second)
        place += 2


def drawn(count: int, limit: int, seed: int) -> list[int]:
    """Return ``count`` random numbers from 0 to ``limit - 1``, drawn with replacement."""
    numbers = _numbers(seed)
    return [_below(limit, numbers) for _ in range(count)]


def _swap(values: list[int], one: int, other: int) -> None:
    values[one], values[other] = values[other], values[one]
