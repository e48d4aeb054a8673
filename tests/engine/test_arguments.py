"""What ranks can spell differently, and which values count as flags: both are validated before anything is sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.worlds import on_ranks, world

SIZE = 2
FLAGS = {
    "of Python": True,
    "of NumPy": np.True_,
    "in a NumPy array": np.array(True),
    "in a tensor": torch.tensor(True),
}
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64]


def _doubled(length: int) -> Any:
    comm = world()
    op = ("premul_sum", 2 if comm.rank == 0 else 2.0)
    part, whole = torch.ones(length), torch.ones(2 * length)
    found: list[Any] = [
        comm.all_reduce(part, op),
        comm.reduce_scatter(torch.ones(SIZE, length), op),
        comm.reduce_scatter([part, whole], op),
    ]
    return [set(work.wait().tolist()) for work in found]


@pytest.mark.parametrize("length", [3, 1500])
def test_factor_can_be_int_or_float(transport: str, length: int) -> None:
    assert on_ranks(_doubled, SIZE, transport, length) == [[{4.0}] * 3] * SIZE


def _scaled_in_turn() -> list[float]:
    comm, x = world(), torch.ones(3)
    return [float(comm.all_reduce(x.clone(), ("premul_sum", factor)).wait()[0]) for factor in (0.5, 0.5, 0.5, 2.0)]


def test_repeated_scaled_sums_keep_their_factor(transport: str) -> None:
    assert on_ranks(_scaled_in_turn, SIZE, transport) == [[1.0, 1.0, 1.0, 4.0]] * SIZE


def _halved(length: int) -> Any:
    return [_halved_as(dtype, length) for dtype in INTEGERS]


def _halved_as(dtype: torch.dtype, length: int) -> Any:
    comm = world()
    given = torch.full((length,), torch.iinfo(dtype).max - 1 - 2 * comm.rank, dtype=dtype)
    op, parts = ("premul_sum", 0.5), torch.stack([given] * SIZE)
    found: list[Any] = [comm.all_reduce(given, op), comm.reduce(given, 0, op), comm.reduce_scatter(parts, op)]
    return [None if got is None else set(got.tolist()) for got in (work.wait() for work in found)]


@pytest.mark.parametrize("length", [3, 1500])
def test_halves_of_large_integers_are_exact(transport: str, length: int) -> None:
    totals = [{torch.iinfo(dtype).max - 2} for dtype in INTEGERS]
    wanted = [[[total, total, total] for total in totals], [[total, None, total] for total in totals]]
    assert on_ranks(_halved, SIZE, transport, length) == wanted


def _discovered(flag: Any) -> Any:
    comm = world()
    here = comm.rank == 0
    given = torch.tensor([1.0, 2.0])
    found: list[Any] = [
        comm.broadcast(given if here else None, 0, discovers=flag).wait(),
        comm.scatter([given, given] if here else None, 0, discovers=flag).wait(),
        *comm.all_to_all([given, given], discovers=flag).wait(),
        comm.send(given, 1, discovers=flag).wait() if here else comm.recv(0, discovers=flag).wait(),
    ]
    return [got.tolist() for got in found if got is not None]


@pytest.mark.parametrize("flag", FLAGS)
def test_any_true_flag_requests_discovered_shapes(transport: str, flag: str) -> None:
    found = on_ranks(_discovered, SIZE, transport, FLAGS[flag])
    assert found == [[[1.0, 2.0]] * 4, [[1.0, 2.0]] * 5]
