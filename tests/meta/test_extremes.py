"""The suite's numbers need the whole range of their dtype, and every reduction of them is exact."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import pytest

from collshim.conformance import reference
from collshim.conformance.cases import Case
from collshim.conformance.dtypes import computable, typed
from collshim.conformance.extremes import floats
from collshim.conformance.values import weights

FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
COMPLEX = ("complex64", "complex128")
NARROWER = {
    "float16": ("bfloat16",),
    "bfloat16": ("float16",),
    "float32": ("float16", "bfloat16"),
    "float64": ("float32", "float16", "bfloat16"),
    "int32": ("float32", "int8"),
    "int64": ("float64", "float32", "int32"),
    "complex64": ("float32",),
    "complex128": ("complex64", "float64"),
}
"""For each dtype those that hold less, in some respect."""
SIZES = (2, 3, 4, 8)
OPS = ("sum", "prod", "min", "max", "avg")
TOO_NARROW = ("avg", "float16", 8)
"""Of float16's 11 digits, multiples of 8 that add exactly leave 8, as many as bfloat16 has."""

every_size = pytest.mark.parametrize("size", SIZES)
every_detour = pytest.mark.parametrize("dtype", NARROWER)


def through(part: Any, narrower: str) -> Any:
    """Return the part after a detour through another dtype."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an imaginary part is discarded
        detour = computable(typed(computable(part), narrower))
        return typed(detour, "bfloat16") if part.dtype.names else detour.astype(part.dtype)


def parts(op: str, dtype: str, size: int) -> list[Any]:
    case = Case("all_reduce", size=size, dtype=dtype, reduce_op=op, seed=1)
    return [part.ravel() for part in case.arrays()]


def reduced(given: list[Any], op: str) -> bytes:
    with np.errstate(all="ignore"):
        return bytes(reference.all_reduce(given, op)[0].tobytes())


def ops_of(dtype: str) -> Iterator[str]:
    """Yield the reductions that a dtype supports."""
    yield from ("sum", "avg") if dtype in COMPLEX else OPS
    yield from reference.BITWISE if dtype in INTEGERS else ()


def exactly(op: str, column: tuple[Any, ...]) -> Fraction:
    """Reduce finite numbers without rounding."""
    numbers = [Fraction(number.item()) for number in column]
    if op in ("sum", "avg"):
        return sum(numbers, Fraction()) / (len(numbers) if op == "avg" else 1)
    return prod(numbers, start=Fraction(1)) if op == "prod" else min(numbers) if op == "min" else max(numbers)


@pytest.mark.parametrize("op", OPS)
@every_size
def test_reductions_are_exact(op: str, size: int) -> None:
    for dtype in (*FLOATING, *INTEGERS):
        given = [computable(part) for part in parts(op, dtype, size)]
        found = computable(reference.all_reduce(parts(op, dtype, size), op)[0])
        columns = [(tuple(column), result) for *column, result in zip(*given, found, strict=True)]
        finite = [(column, result) for column, result in columns if np.isfinite(column).all()]
        assert len(finite) >= 5
        for column, result in finite:
            assert Fraction(result.item()) == exactly(op, column), (dtype, column)


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGERS, *COMPLEX])
def test_reductions_have_the_same_bits_in_any_order(dtype: str) -> None:
    for op in ops_of(dtype):
        assert len({reduced(list(order), op) for order in permutations(parts(op, dtype, 4))}) == 1, op


@every_detour
@pytest.mark.parametrize("collective", ["broadcast", "scatter", "ring"])
def test_detour_of_moved_data_is_visible(collective: str, dtype: str) -> None:
    for size in SIZES:
        case = Case(collective, size=size, dtype=dtype, seed=size)
        for part in (part for row in case.parts() for part in row):
            for narrower in NARROWER[dtype]:
                assert through(part, narrower).tobytes() != part.tobytes(), (size, narrower)


@every_detour
@every_size
def test_detour_before_a_reduction_is_visible(dtype: str, size: int) -> None:
    for op in ops_of(dtype):
        if (op, dtype, size) == TOO_NARROW:
            continue
        given, plain = parts(op, dtype, size), "sum" if op == "avg" else op  # a rounded sum need not be a multiple
        for narrower in NARROWER[dtype]:
            assert reduced([through(part, narrower) for part in given], plain) != reduced(given, plain), (op, narrower)


@every_detour
@pytest.mark.parametrize("rank", [0, 1])
def test_detour_of_one_of_two_ranks_is_visible(dtype: str, rank: int) -> None:
    for op in ops_of(dtype):
        if op in ("min", "max"):
            continue  # only the other one's value is visible
        given, plain = parts(op, dtype, 2), "sum" if op == "avg" else op
        for narrower in NARROWER[dtype]:
            detoured = [through(part, narrower) if other == rank else part for other, part in enumerate(given)]
            assert reduced(detoured, plain) != reduced(given, plain), (op, narrower)


@every_detour
@every_size
def test_detour_of_a_result_is_visible(dtype: str, size: int) -> None:
    for op in ops_of(dtype):
        if (op, dtype, size) == TOO_NARROW:
            continue
        result = reference.all_reduce(parts(op, dtype, size), op)[0]
        for narrower in NARROWER[dtype]:
            assert through(result, narrower).tobytes() != result.tobytes(), (op, narrower)


@pytest.mark.parametrize("dtype", [*FLOATING, *COMPLEX])
def test_six_parts_have_every_kind_of_number(dtype: str) -> None:
    form = floats(dtype)
    normal, great = 2.0 ** (form.least + form.digits - 1), 2.0 ** (form.greatest + form.digits - 1)
    for part in Case("all_gather", size=3, dtype=dtype).arrays():
        numbers = computable(part).ravel()
        for several in [np.real(numbers), np.imag(numbers)] if dtype in COMPLEX else [numbers]:
            wide = several.astype("float64")
            assert any(np.signbit(wide) & (wide == 0))
            assert any(np.isinf(wide))
            assert any((wide != 0) & (abs(wide) < normal))
            assert any((abs(wide) >= great) & np.isfinite(wide))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_near_both_limits(dtype: str) -> None:
    info = np.iinfo(dtype)
    for seed in range(8):
        part = [int(number) for number in Case("all_gather", dtype=dtype, seed=seed).arrays()[0].ravel()]
        assert info.max - max(part) < 100
        assert min(part) - info.min < 100


def test_unsigned_order_differs_from_signed_order() -> None:
    for op in ("min", "max"):
        given = parts(op, "uint8", 2)
        signed = reference.all_reduce([part.view("int8") for part in given], op)[0].view("uint8")
        assert (signed != reference.all_reduce(given, op)[0]).any()


@every_size
def test_booleans_distinguish_every_reduction_from_a_sum(size: int) -> None:
    given = parts("sum", "bool", size)
    counted = np.sum([part.astype("int64") for part in given], axis=0)
    assert set(counted.tolist()) == {0, 1, size - 1, size}
    several = {op: reference.all_reduce(given, op)[0].tolist() for op in ("sum", "prod", "bxor")}
    assert len({str(held) for held in several.values()}) == 3
    for part in Case("broadcast", size=size, dtype="bool").arrays():
        assert {True, False} == set(part.ravel().tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_are_wide_and_add_exactly(dtype: str) -> None:
    several = [weights((6,), rank, dtype) for rank in range(8)]
    total = np.sum(several, axis=0, dtype=dtype)
    assert total.tolist() == [sum(map(int, column)) for column in zip(*several, strict=True)]
    for part in (*several, total):
        assert any(through(part, NARROWER[dtype][0]) != part)


def test_gradients_of_products_are_exact() -> None:
    for size in (2, 3, 4, 5, 6, 8):
        case = Case("all_reduce", size=size, shape=(64,), reduce_op="prod", gradient=True, seed=3)
        total = sum(weights((64,), rank, "float32").astype("float64") for rank in range(size))
        for rank in range(size):
            others = [part.astype("float64") for other, part in enumerate(case.arrays()) if other != rank]
            gradient = total * np.prod(others, axis=0)
            assert (gradient.astype("float32") == gradient).all()
