"""Reductions in rank order match Python's integers and NumPy's rounding, for every dtype that has them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import Tensor

from collshim.arrays.arithmetic import reducer, scaling_reducer, undefined_for
from collshim.conformance import reference

RANKS = 5
LENGTH = 41

BITS = {
    torch.uint8: (0, 8),
    torch.uint16: (0, 16),
    torch.uint32: (0, 32),
    torch.uint64: (0, 64),
    torch.int8: (1, 8),
    torch.int16: (1, 16),
    torch.int32: (1, 32),
    torch.int64: (1, 64),
}
FLOATS: dict[torch.dtype, Any] = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
}
EIGHT_BITS: dict[torch.dtype, Any] = {
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.float8_e5m2: ml_dtypes.float8_e5m2,
    torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
    torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
}
COMPLEX = (torch.complex64, torch.complex128)
OPS = reference.REDUCE_OPS
ARITHMETIC = tuple(op for op in OPS if op not in reference.BITWISE)

PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: a + b,
    "avg": lambda a, b: a + b,
    "prod": lambda a, b: a * b,
    "min": min,
    "max": max,
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
}


def wrapped(value: int, dtype: torch.dtype) -> int:
    signed, bits = BITS[dtype]
    value %= 2**bits
    return value - 2**bits if signed and value >= 2 ** (bits - 1) else value


def drawn(dtype: torch.dtype) -> list[list[int]]:
    """Return integers of the whole range, including its ends, a row per rank."""
    signed, bits = BITS[dtype]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    source = random.Random(bits + signed)
    return [[low, high, *(source.randint(low, high) for _ in range(LENGTH - 2))] for _ in range(RANKS)]


def fractions(kind: Any) -> list[Any]:
    """Return numbers that do not add up exactly, a row per rank."""
    source = np.random.default_rng(7)
    return [
        (source.standard_normal(LENGTH) * 10.0 ** source.integers(-2, 2, LENGTH)).astype(kind) for _ in range(RANKS)
    ]


def from_numpy(row: Any, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(row.view(f"u{row.dtype.itemsize}").copy()).view(dtype)


def to_numpy(tensor: Tensor, kind: Any) -> Any:
    bits = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}[tensor.element_size()]
    return tensor.view(bits).numpy().view(kind)


def folded(rows: Sequence[Sequence[int]], op: str, dtype: torch.dtype) -> list[int]:
    columns = []
    for column in zip(*rows, strict=True):
        value = column[0]
        for other in column[1:]:
            value = wrapped(PYTHON[op](value, other), dtype)
        columns.append(math.trunc(_exact_quotient(value)) if op == "avg" else value)
    return columns


def _exact_quotient(value: int) -> int:
    return abs(value) // RANKS * (1 if value >= 0 else -1)


def reduced(
    parts: list[torch.Tensor], op: str, factor: float | None = None, out: torch.Tensor | None = None
) -> torch.Tensor:
    dtype = parts[0].dtype
    return (reducer(dtype, op) if factor is None else scaling_reducer(dtype, factor))(parts, out)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_integers_wrap_and_averages_truncate_towards_zero(dtype: torch.dtype, op: str) -> None:
    rows = drawn(dtype)
    parts = [torch.tensor(row, dtype=dtype) for row in rows]
    assert reduced(parts, op).tolist() == folded(rows, op, dtype)


@pytest.mark.parametrize("factor", [1, 3, -2, 0])
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_integer_factors_of_integers_are_exact(dtype: torch.dtype, factor: int) -> None:
    rows = drawn(dtype)
    parts = [torch.tensor(row, dtype=dtype) for row in rows]
    wanted = [wrapped(sum(value * factor for value in column), dtype) for column in zip(*rows, strict=True)]
    assert reduced(parts, "premul_sum", float(factor)).tolist() == wanted


@pytest.mark.parametrize("factor", [0.5, -0.5, 1.25, 3 + 2.0**-31, -(2.0**-20)])
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_products_with_binary_fractions_are_exact_and_truncated(dtype: torch.dtype, factor: float) -> None:
    rows = drawn(dtype)
    parts = [torch.tensor(row, dtype=dtype) for row in rows]
    exact = Fraction(factor)
    wanted = [wrapped(sum(math.trunc(value * exact) for value in column), dtype) for column in zip(*rows, strict=True)]
    assert reduced(parts, "premul_sum", factor).tolist() == wanted


@pytest.mark.parametrize("factor", [0.1, -1 / 3, 1e5 / 3, 2.0**20 + 2.0**-32])
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_products_with_other_fractions_match_truncated_float64(dtype: torch.dtype, factor: float) -> None:
    rows = drawn(dtype)
    parts = [torch.tensor(row, dtype=dtype) for row in rows]
    wanted = [wrapped(sum(int(value * factor) for value in column), dtype) for column in zip(*rows, strict=True)]
    assert reduced(parts, "premul_sum", factor).tolist() == wanted


@pytest.mark.parametrize("factor", [2.0**64, -(2.0**63), 1e300])
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_products_with_huge_factors_wrap_around(dtype: torch.dtype, factor: float) -> None:
    parts = [torch.tensor([1, 3], dtype=dtype) for _ in range(RANKS)]
    wanted = [wrapped(RANKS * int(factor), dtype), wrapped(RANKS * 3 * int(factor), dtype)]
    assert reduced(parts, "premul_sum", factor).tolist() == wanted


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_are_rounded_per_rank_in_order(dtype: torch.dtype, op: str) -> None:
    kind = FLOATS[dtype]
    rows = fractions(kind)
    wanted = rows[0].copy()
    with np.errstate(over="ignore"):
        for row in rows[1:]:
            wanted = reference.FOLDS[op](wanted, row)
    if op == "avg":
        wanted = (wanted.astype(np.float64) / RANKS).astype(kind)
    found = to_numpy(reduced([from_numpy(row, dtype) for row in rows], op), kind)
    assert found.astype(np.float64).tolist() == wanted.astype(np.float64).tolist()


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_eight_bit_floats_are_rounded_once(dtype: torch.dtype, op: str) -> None:
    kind = EIGHT_BITS[dtype]
    rows = fractions(kind)
    wanted = rows[0].astype(np.float32)
    for row in rows[1:]:
        wide = row.astype(np.float32)
        wanted = reference.FOLDS[op](wanted, wide)
    rounded = (wanted / np.float32(RANKS) if op == "avg" else wanted).astype(kind)
    found = to_numpy(reduced([from_numpy(row, dtype) for row in rows], op), kind)
    assert np.array_equal(found.astype(np.float32), rounded.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("op", ["sum", "avg", "prod"])
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_complex_numbers(dtype: torch.dtype, op: str) -> None:
    rows = [[complex(rank + 1, index - 3) for index in range(7)] for rank in range(RANKS)]
    wanted = []
    for column in zip(*rows, strict=True):
        value = column[0]
        for other in column[1:]:
            value = PYTHON[op](value, other)
        wanted.append(value / RANKS if op == "avg" else value)
    found = reduced([torch.tensor(row, dtype=dtype) for row in rows], op)
    assert torch.allclose(found, torch.tensor(wanted, dtype=dtype))


@pytest.mark.parametrize(("op", "factor"), [("sum", None), ("avg", None), ("prod", None), ("premul_sum", 0.5)])
def test_halves_of_complex_numbers_are_rounded_once(op: str, factor: float | None) -> None:
    rows = [torch.tensor([1 + 2j, 0.1 - 3j, 2048 + 1j]) * (rank + 1) / 7 for rank in range(RANKS)]
    parts = [row.to(torch.complex32) for row in rows]
    wide = reduced([part.to(torch.complex64) for part in parts], op, factor)
    assert torch.equal(reduced(parts, op, factor).to(torch.complex64), wide.to(torch.complex32).to(torch.complex64))


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_is_propagated(dtype: torch.dtype, op: str) -> None:
    nan, inf = math.nan, math.inf
    parts = [torch.tensor(row, dtype=dtype) for row in ([nan, 1, -inf, 1], [1, nan, 1, inf], [2, 2, 2, nan])]
    found = reduced(parts, op)
    assert found.isnan().tolist() == [True, True, False, True]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.uint32, torch.bool, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("op", ["sum", "prod", "max", "avg", "bxor", "premul_sum"])
@pytest.mark.parametrize("place", range(4))
def test_result_can_overwrite_any_part(place: int, op: str, dtype: torch.dtype) -> None:
    if undefined_for(op, dtype) is not None:
        return
    factor = 2.0 if op == "premul_sum" else None
    parts = [torch.tensor([rank % 2, 1, 2]).to(dtype) for rank in range(4)]
    wanted = reduced([part.clone() for part in parts], op, factor)
    reduced(parts, op, factor, parts[place])
    assert parts[place].float().tolist() == wanted.float().tolist()


@pytest.mark.parametrize("dtype", [*BITS, *FLOATS, *EIGHT_BITS, *COMPLEX, torch.complex32, torch.bool], ids=str)
@pytest.mark.parametrize("op", [*OPS, "premul_sum"])
def test_shapes_without_elements_or_dimensions(op: str, dtype: torch.dtype) -> None:
    if undefined_for(op, dtype) is not None:
        return
    factor = 1.0 if op == "premul_sum" else None
    assert reduced([torch.ones(0, 2).to(dtype)] * 2, op, factor).shape == (0, 2)
    assert reduced([torch.tensor(1).to(dtype)], op, factor).to(torch.complex64).item() == 1


MEANINGLESS = [
    *((op, dtype) for op in reference.BITWISE for dtype in (torch.float32, torch.bfloat16, torch.complex64)),
    *((op, torch.complex128) for op in ("min", "max")),
    *((op, torch.bool) for op in ("avg", "premul_sum")),
    *((op, dtype) for op in (*OPS, "premul_sum") for dtype in (torch.bits8, torch.bits16, torch.quint8)),
]
if hasattr(torch, "float8_e8m0fnu"):  # torch 2.7
    MEANINGLESS += [(op, torch.float8_e8m0fnu) for op in ("sum", "prod", "avg")]


@pytest.mark.parametrize(("op", "dtype"), MEANINGLESS, ids=str)
def test_meaningless_operation_is_refused_first(op: str, dtype: torch.dtype) -> None:
    assert undefined_for(op, dtype)
