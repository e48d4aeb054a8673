"""Philox 4x32-10, TensorFlow's counter-based random number generator: for the same key, the same numbers.

Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), and TensorFlow 2.21 on CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint32]]
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SCRAMBLING_KEY = 0x02461E293EC8F720


def words(key: int, counter: int, count: int) -> Words:
    """Return ``count`` random 32-bit words, from a 64-bit key and a 128-bit counter."""
    blocks = [_split(counter + block, 4) for block in range(-(-count // 4))]
    lanes = np.array(blocks, np.uint64).reshape(-1, 4).T
    keys = _split(key, 2)
    for _ in range(10):
        lanes = _round(lanes, keys)
        keys = [(word + step) & 0xFFFFFFFF for word, step in zip(keys, _STEPS, strict=True)]
    return lanes.T.reshape(-1)[:count].astype(np.uint32)


def wide(key: int, counter: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return ``count`` random 64-bit words."""
    found = words(key, counter, 2 * count).astype(np.uint64)
    whole: np.ndarray[Any, np.dtype[np.uint64]] = found[0::2] | (found[1::2] << np.uint64(32))
    return whole


def scrambled(seed: tuple[int, int]) -> tuple[int, int]:
    """Return the key and the counter for the two seeds of a stateless operation."""
    mixed = [int(word) for word in words(_SCRAMBLING_KEY, _joined([*_halves(seed[0]), *_halves(seed[1])]), 4)]
    return _joined(mixed[:2]), _joined([0, 0, *mixed[2:]])


def uniform(key: int, counter: int, count: int, bits: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return numbers in [0, 1) with this many random bits: 23 for float32, 52 for float64."""
    if bits <= 32:
        return (words(key, counter, count) & np.uint32((1 << bits) - 1)) / float(1 << bits)
    pairs = words(key, counter, 2 * count).astype(np.uint64)
    high = pairs[0::2] & np.uint64((1 << (bits - 32)) - 1)
    found: np.ndarray[Any, np.dtype[np.float64]] = ((high << np.uint64(32)) | pairs[1::2]) / float(1 << bits)
    return found


def normal(key: int, counter: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return standard normal numbers, float32 or float64, by the Box-Muller method."""
    kind = np.dtype(dtype).type
    pairs = uniform(key, counter, count + count % 2, 23 if kind is np.float32 else 52).astype(kind)
    smallest = kind(1.0e-7)
    radius = np.sqrt(kind(-2) * np.log(np.maximum(pairs[0::2], smallest)))
    angle = kind(2 * np.pi) * pairs[1::2]
    found = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], -1).reshape(-1)[:count]
    return found.astype(kind)


def truncated_normal(key: int, counter: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Return standard normal numbers between -2 and 2, float32 or float64.

    Each group of 16 bytes starts at its own counter, because a group may draw any number of words.
    """
    size = 16 // np.dtype(dtype).itemsize
    groups = [_within(key, counter + 64 * size * group, size, dtype) for group in range(-(-count // size))]
    return np.concatenate([np.empty(0, dtype), *groups])[:count]


def _within(key: int, counter: int, count: int, dtype: Any) -> np.ndarray[Any, Any]:
    drawn = 4 * count
    while True:
        numbers = normal(key, counter, drawn, dtype)
        kept: np.ndarray[Any, Any] = numbers[np.abs(numbers) < 2]
        if len(kept) >= count:
            return kept[:count]
        drawn *= 2


def _round(lanes: np.ndarray[Any, np.dtype[np.uint64]], keys: list[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    first, second = lanes[0] * np.uint64(_MULTIPLIERS[0]), lanes[2] * np.uint64(_MULTIPLIERS[1])
    shift = np.uint64(32)
    return np.stack(
        [
            (second >> shift) ^ lanes[1] ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> shift) ^ lanes[3] ^ np.uint64(keys[1]),
            first & _LOW,
        ]
    )


def _split(number: int, count: int) -> list[int]:
    return [(number >> (32 * place)) & 0xFFFFFFFF for place in range(count)]


def _halves(number: int) -> list[int]:
    return _split(number, 2)


def _joined(parts: list[int]) -> int:
    return sum(part << (32 * place) for place, part in enumerate(parts))
