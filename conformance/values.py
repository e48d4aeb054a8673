"""The inputs of the ranks of a case: numbers and objects that follow from the case alone.

This module needs only the standard library and NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from collshim.conformance import extremes
from collshim.conformance.dtypes import typed
from collshim.conformance.extremes import Places
from collshim.conformance.reference import BITWISE

Part: TypeAlias = NDArray[Any]
Shape: TypeAlias = "tuple[int, ...]"

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
_SEEDS = 32
"""The number of values that a case's labels may start from: few, because labels count inwards from the limits."""
_PERIOD = 333 * len(extremes.KINDS)


def numbers(case: Any, shapes: Sequence[Shape]) -> list[Part]:
    """Return one array of each shape, sender by sender, by the case's seed, family and dtype.

    Arrays with more than ``_PERIOD`` numbers repeat their first ``_PERIOD``.
    """
    lengths = [prod(shape) for shape in shapes]
    counts = lengths if case.given is not None else [min(length, _PERIOD) for length in lengths]
    whole = typed(_whole(case, counts), case.dtype)
    pieces = np.split(whole, list(accumulate(counts))[:-1])
    several = zip(pieces, shapes, lengths, strict=True)
    return [np.resize(one, shape) if length > _PERIOD else one.reshape(shape) for one, shape, length in several]


def objects(case: Any, count: int) -> list[Any]:
    """Return ``count`` objects that can be pickled, all different, of growing size; arrays in them are NumPy's."""
    return [_object(case.seed % 1000 + place, place) for place in range(count)]


def weights(shape: Shape, rank: int, dtype: str) -> Part:
    """Return the factors of a part of a rank's result in its loss: whole numbers that differ between ranks.

    They have more digits than half the dtype's width holds, but so few that sums over the ranks are exact.
    """
    count = int(np.prod(shape, dtype=np.int64))
    least = 2 ** (extremes.floats(dtype).digits // 2)
    thirds = least + 1 + 2 * (np.arange(count) % 64) + rank  # three ranks average exactly, as 2, 4 and 8 do
    whole: Part = 3 * thirds
    return whole.reshape(shape).astype(dtype)


def _object(label: int, size: int) -> Any:
    tensors = {dtype: _array(label, dtype) for dtype in _IN_OBJECTS} if size % 4 == 0 else {}
    kinds: list[Any] = [
        {"label": label, "text": "ä" * size, "nested": [None, (True, size), *_PRECISE], "tensors": tensors},
        ("tuple", label, [label] * size),
        [2**63 + label, {"inner": list(range(size))}, _array(label, "float32")],
        2**53 + 1 + label,
    ]
    return kinds[size % len(kinds)]


_PRECISE = (1 + 2**-50, 2**53 - 1, -0.0, 2.0**-1074, float("inf"))
_IN_OBJECTS = (
    *("float64", "float32", "float16", "bfloat16", "complex128", "complex64"),
    *("int64", "int32", "int8", "uint8"),
)


def _array(label: int, dtype: str) -> Part:
    return _kept_array(label, dtype).copy()


@lru_cache(maxsize=1024)
def _kept_array(label: int, dtype: str) -> Part:
    at = _places([6], 1, label, np.ones(6, np.int64))
    return typed(_labels(at, dtype), dtype)


def _whole(case: Any, counts: Sequence[int]) -> Part:
    """Return the numbers of all parts end to end."""
    if case.given is not None:
        given = np.asarray(case.given)
        return _complex(*given.reshape(-1, 2).T) if _is_complex(case.dtype) else given
    random = np.random.default_rng(case.seed)
    if case.family == "real":
        real = random.standard_normal(sum(counts))
        return _complex(real, real[::-1]) if _is_complex(case.dtype) else real
    label = int(random.integers(0, _SEEDS))
    at = _places(counts, len(case.ranks), label, random.choice(np.array([-1, 1]), sum(counts)))
    if case.collective in REDUCTIONS:
        return _operands(case, at, random)
    return extremes.booleans(at, random) if case.dtype == "bool" else _labels(at, case.dtype)


def _places(counts: Sequence[int], ranks: int, label: int, sign: Part) -> Places:
    """Locate numbers in parts of lengths ``counts``, sender by sender, as many of each; labels start from ``label``."""
    starts = np.cumsum(counts) - counts
    index = np.arange(sum(counts))
    parts = np.arange(len(counts))
    sender = np.repeat(parts // max(len(counts) // ranks, 1), counts)
    return Places(ranks, sender, index - np.repeat(starts, counts), label + index, sign)


def _labels(at: Places, dtype: str) -> Part:
    if _is_complex(dtype):
        form = extremes.floats(dtype)
        return _complex(extremes.float_labels(at, form), extremes.float_labels(_aside(at), form))
    if dtype.startswith(("int", "uint")):
        return extremes.integer_labels(at, dtype)
    return extremes.float_labels(at, extremes.floats(dtype))


def _operands(case: Any, at: Places, random: np.random.Generator) -> Part:
    """Return the numbers to reduce, by the kind of reduction."""
    if case.dtype == "bool":
        return extremes.boolean_addends(at)
    if case.reduce_op in BITWISE:
        return extremes.bits(at, case.dtype, random)
    if case.reduce_op in ("min", "max"):
        return _labels(at, case.dtype)
    return _factors(case, at) if case.reduce_op == "prod" else _addends(case.dtype, at, case.reduce_op == "avg")


def _addends(dtype: str, at: Places, average: bool) -> Part:
    if dtype.startswith(("int", "uint")):
        return extremes.integer_addends(at, dtype, average=average)
    form = extremes.floats(dtype)
    if not _is_complex(dtype):
        return extremes.float_addends(at, form, average=average, infinite=True)
    real, imaginary = (
        extremes.float_addends(place, form, average=average, infinite=False) for place in (at, _aside(at))
    )  # dividing an infinite complex number by a size makes NaN
    return _complex(real, imaginary)


def _factors(case: Any, at: Places) -> Part:
    """Return exact factors; a gradient also multiplies the products of the others' factors with weights."""
    if case.dtype.startswith(("int", "uint")):
        return extremes.integer_factors(at, case.dtype)
    return extremes.small_factors(at) if case.gradient else extremes.float_factors(at, extremes.floats(case.dtype))


def _aside(at: Places) -> Places:
    """Return places for imaginary parts: other kinds of numbers than the real ones at the same positions."""
    return at._replace(position=at.position + 3, label=at.label + _SEEDS)


def _complex(real: Part, imaginary: Part) -> Part:
    """Join the parts without arithmetic, which would make NaN of an infinity and lose the sign of a zero."""
    whole = np.empty(len(real), np.complex128)
    whole.real, whole.imag = real, imaginary
    return whole


def _is_complex(dtype: str) -> bool:
    return dtype.startswith("complex")
