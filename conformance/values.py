"""What the ranks of a case give: numbers and objects that follow from the case alone.

Standard library and NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Part: TypeAlias = NDArray[Any]
Shape: TypeAlias = "tuple[int, ...]"

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")


def numbers(case: Any, shapes: Sequence[Shape]) -> list[Part]:
    """One array of each shape, by the case's seed, family and dtype."""
    counts = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    pieces = np.split(_whole(case, sum(counts)), np.cumsum(counts)[:-1])
    arrays = [piece.astype(case.dtype) if case.given is not None else _typed(piece, case.dtype) for piece in pieces]
    return [piece.reshape(shape) for piece, shape in zip(arrays, shapes, strict=True)]


def objects(case: Any, count: int) -> list[Any]:
    """``count`` objects that pickle, no two alike, of growing size."""
    return [_object(case.seed % 1000 + place, place) for place in range(count)]


def weights(shape: Shape, rank: int, dtype: str) -> Part:
    """By what a rank's loss multiplies a part of its result: small whole numbers that differ between ranks."""
    count = int(np.prod(shape, dtype=np.int64))
    return (np.arange(count) % 4 + rank + 1).reshape(shape).astype(dtype)


def _object(label: int, size: int) -> Any:
    kinds: list[Any] = [
        {"label": label, "text": "ä" * size, "nested": [1.5, None, (True, size)]},
        ("tuple", label, [label] * size),
        [label, {"inner": list(range(size))}],
        label,
    ]
    return kinds[size % len(kinds)]


def _whole(case: Any, count: int) -> Part:
    if case.given is not None:
        return np.asarray(case.given)
    random = np.random.default_rng(case.seed)
    if case.family == "real":
        return random.standard_normal(count)
    if case.collective in REDUCTIONS:
        return _addends(random, count, case)
    return _labels(random, count, case.dtype)


def _addends(random: np.random.Generator, count: int, case: Any) -> Part:
    """Nonzero, and so small that sums and products of eight are exact in float16; averages are whole."""
    if case.dtype == "bool":
        return random.integers(0, 2, count)
    values = random.integers(1, 3 if case.reduce_op == "prod" else 10, count)
    if not case.dtype.startswith("uint"):
        values *= random.choice(np.array([-1, 1]), count)
    return values * len(case.ranks) if case.reduce_op == "avg" else values


def _labels(random: np.random.Generator, count: int, dtype: str) -> Part:
    """Consecutive numbers, so that an element in a wrong place shows, from a start that the seed picks."""
    if dtype == "bool":
        return random.integers(0, 2, count)
    span = 120 if dtype in ("int8", "uint8") else 2000
    return (random.integers(0, span) + np.arange(count)) % span


def _typed(values: Part, dtype: str) -> Part:
    array = values.astype(dtype)
    return array + np.array(1j, dtype) * array[::-1] if dtype.startswith("complex") else array
