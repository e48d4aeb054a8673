"""Every dtype through every collective: reductions if the dtype has them, movements always."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from tests.engine.scenarios.values import (
    MOVEMENTS,
    REDUCE_OPS,
    REDUCTIONS,
    SHAPES,
    expected,
    means_something,
    scenarios,
)
from tests.engine.worlds import Outcome, compare, outcomes, values_of

SIZE = 2
DTYPES = [
    torch.bool,
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    *(torch.complex32, torch.complex64, torch.complex128),
]
LENGTHS = ("small", "large")

REDUCED = [
    (dtype, op, reduce_op)
    for dtype in DTYPES
    for op in REDUCTIONS
    for reduce_op in REDUCE_OPS
    if means_something(reduce_op, dtype) and (op == "all_reduce" or reduce_op in ("sum", "avg", "max"))
]


def _key(*parts: Any) -> str:
    return ", ".join(map(str, parts))


@cache
def _moved(transport: str) -> list[dict[str, Outcome]]:
    return outcomes(
        {
            _key(dtype, op, length): scenario
            for dtype in DTYPES
            for length in LENGTHS
            for op, scenario in scenarios(MOVEMENTS, SHAPES[length], dtype).items()
        },
        SIZE,
        transport,
    )


@cache
def _reduced(transport: str) -> list[dict[str, Outcome]]:
    return outcomes(
        {
            _key(dtype, op, reduce_op, length): scenarios([op], SHAPES[length], dtype, reduce_op)[op]
            for dtype, op, reduce_op in REDUCED
            for length in LENGTHS
        },
        SIZE,
        transport,
    )


@pytest.mark.parametrize("op", MOVEMENTS)
def test_every_dtype_is_moved_unchanged(transport: str, op: str) -> None:
    compare(
        (
            _key(dtype, op, length),
            values_of(_moved(transport), _key(dtype, op, length)),
            expected(op, SHAPES[length], dtype, "sum", SIZE),
        )
        for dtype in DTYPES
        for length in LENGTHS
    )


@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_dtype_is_reduced_exactly(transport: str, op: str) -> None:
    compare(
        (
            _key(dtype, op, reduce_op, length),
            values_of(_reduced(transport), _key(dtype, op, reduce_op, length)),
            expected(op, SHAPES[length], dtype, reduce_op, SIZE),
        )
        for dtype, reduction, reduce_op in REDUCED
        for length in LENGTHS
        if reduction == op
    )
