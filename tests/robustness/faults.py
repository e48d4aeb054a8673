"""Possible mistakes in an argument: faults of one kind each, with drawn plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

from tests.robustness.context import COLUMNS, SIZE, RankContext
from tests.robustness.unsupported import NO_ARRAYS, SHARED, UNREADABLE, UNSUPPORTED, UNWRITABLE

Drawn = Any
"""A plain value that a fault uses."""

Make = Callable[[RankContext, Any, Drawn], Any]
"""Makes the bad argument from the rank, the valid argument and the drawn value."""


class Fault(NamedTuple):
    """One mistake.

    Attributes:
        kind: the respect: "type", "shape", "dtype", "memory", "length", "rank", "group", "axis", "op" or "state".
        draw: the strategy of its value.
        make: makes the argument.
    """

    kind: str
    draw: st.SearchStrategy[Drawn]
    make: Make


def value(kind: str, *draws: st.SearchStrategy[Drawn]) -> Fault:
    """Replace the argument by the drawn value."""
    return Fault(kind, st.one_of(*draws), lambda context, good, drawn: drawn)


def one_of(kind: str, *values: Drawn) -> Fault:
    return value(kind, st.sampled_from(values))


def changed(kind: str, make: Callable[[RankContext, Any], Any]) -> Fault:
    """Change the argument without a drawn value."""
    return Fault(kind, st.none(), lambda context, good, drawn: make(context, good))


def unsupported(kind: str, names: Iterable[str]) -> Fault:
    """Use one of ``UNSUPPORTED``."""
    return Fault(kind, st.sampled_from(sorted(names)), lambda context, good, name: UNSUPPORTED[name]())


def in_an_entry(fault: Fault) -> Fault:
    """Apply the fault to one entry of a list."""

    def make(context: RankContext, good: Sequence[Any], drawn: tuple[int, Any]) -> list[Any]:
        place, what = drawn
        return [fault.make(context, part, what) if place == rank else part for rank, part in enumerate(good)]

    return Fault(fault.kind, st.tuples(st.integers(0, SIZE - 1), fault.draw), make)


def zeros(context: RankContext, shape: Sequence[int]) -> Any:
    found = torch.zeros(tuple(shape), dtype=context.dtype)
    return found if context.kind == "torch" else found.numpy()


def _recast(context: RankContext, good: Any, dtype: str) -> Any:
    found = torch.as_tensor(good).to(getattr(torch, dtype))
    return found if isinstance(good, torch.Tensor) or dtype == "bfloat16" else found.numpy()


def _reshaped(context: RankContext, good: Any, lengths: Sequence[int]) -> Any:
    """Return another shape, with neither the same number of elements nor parts that fit other ranks'."""
    wrong = tuple(lengths)
    if wrong and wrong[0] in (SIZE, SIZE * context.rows):
        wrong = (wrong[0] + 1, *wrong[1:])
    taken = {int(np.prod(good.shape)), context.rows * COLUMNS, SIZE * context.rows * COLUMNS}
    size = int(np.prod(wrong))
    return zeros(context, (*wrong, size + 7) if size in taken else wrong)


def _of_length(context: RankContext, good: Sequence[Any], length: int) -> list[Any]:
    return [good[index % len(good)] for index in range(length)]


def _split(context: RankContext, good: list[int], drawn: tuple[int, int]) -> list[int]:
    """Return sizes of which one is too large or too small, or negative though their sum is right."""
    place, more = drawn
    found = list(good)
    found[place] += more
    if found[place] < 0:
        found[(place + 1) % SIZE] -= more
    return found


def _counted(context: RankContext, good: list[int], drawn: tuple[int, int]) -> list[int]:
    """Return counts in which one of this rank's does not fit its input."""
    getter, more = drawn
    found = list(good)
    found[context.rank * SIZE + getter] += more
    return found


NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.complex_numbers(max_magnitude=9))
WORDS = st.one_of(st.text(max_size=3), st.binary(max_size=3))
NO_INTS = st.one_of(
    st.sampled_from([0.5, -1.5, float("nan"), float("inf")]),
    WORDS,
    st.complex_numbers(max_magnitude=9).filter(lambda number: number.imag != 0),  # ranks detect 0j, as in torch
    st.lists(st.integers(0, 2), max_size=3),
    st.dictionaries(st.integers(0, 2), st.integers(0, 2), max_size=2),
)
OUTSIDE = st.one_of(
    st.integers(SIZE, SIZE + 9), st.integers(-9, -1), st.sampled_from([2**31, -(2**31), 2**63, -(2**63) - 1, 10**30])
)
# Not complex64: it is valid with float32, as pairs of them (torch 2.13).
_DTYPES = st.sampled_from(["float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool", "complex128"])
_MORE = st.integers(-20, 20).filter(bool)
_PLACES = st.integers(0, SIZE - 1)
_ITERABLE = ("a list", "a tuple", "a dict", "a set", "a range", "a generator")

NOTHING = value("type", st.none())
NO_ARRAY = (value("type", NUMBERS, WORDS), unsupported("type", NO_ARRAYS))
NO_OPTIONAL_ARRAY = (NO_ARRAY[0], unsupported("type", NO_ARRAYS.keys() - {"None"}))
NO_ARRAY_NOR_SHAPE = (NO_ARRAY[0], unsupported("type", NO_ARRAYS.keys() - {"a tuple"}))
UNREADABLE_ARRAY = unsupported("dtype", UNREADABLE)
UNWRITABLE_ARRAY = unsupported("memory", UNWRITABLE)
UNWRITABLE_INPUT = unsupported("memory", [name for name in UNWRITABLE if name not in SHARED])
OTHER_SHAPE = Fault("shape", st.lists(st.integers(0, 7), max_size=4), _reshaped)
OTHER_DTYPE = Fault("dtype", _DTYPES, _recast)
UNDIVIDED = Fault("shape", st.integers(1, 30).filter(lambda n: n % SIZE), lambda h, g, n: zeros(h, (n, COLUMNS)))

NO_LIST = (
    value("type", NUMBERS, WORDS.filter(len)),
    unsupported("type", NO_ARRAYS.keys() - {*_ITERABLE[:2], "None", "a generator"}),
)
NOT_TO_GO_THROUGH = unsupported("type", NO_ARRAYS.keys() - set(_ITERABLE))
A_TUPLE = changed("type", lambda context, good: tuple(good))
OTHER_LENGTH = Fault("length", st.integers(0, 9).filter(lambda length: length != SIZE), _of_length)
LESS_LENGTH = Fault("length", st.integers(0, SIZE - 1), _of_length)
OTHER_LENGTH_BUT_0 = Fault("length", st.sampled_from([1, 2, 4, 5, 7]), _of_length)
ENTRY_NO_ARRAY = tuple(map(in_an_entry, (*NO_ARRAY, UNREADABLE_ARRAY)))
ENTRY_OF_OTHER_DTYPE = in_an_entry(OTHER_DTYPE)

SPLITS = (
    Fault("shape", st.tuples(_PLACES, _MORE), _split),
    Fault("length", st.sampled_from([1, 2, 4, 7]), lambda h, g, n: [h.rows * SIZE] + [0] * (n - 1)),
    value("type", st.lists(st.sampled_from(["2", 2.5, None, b"2"]), min_size=SIZE, max_size=SIZE)),
    value("type", st.integers(1, 9), st.floats(allow_nan=False), st.text(min_size=1, max_size=3)),
)
COUNTS = (
    Fault("shape", st.tuples(_PLACES, _MORE), _counted),
    Fault("length", st.integers(0, 20).filter(lambda n: n != SIZE**2), lambda h, g, n: [COLUMNS * h.rows] * n),
    value("type", NUMBERS, WORDS, st.none()),
    value("type", st.lists(st.sampled_from(["4", 4.5, None]), min_size=SIZE**2, max_size=SIZE**2)),
)
