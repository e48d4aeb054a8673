"""all_reduce in place of a tensor whose elements share memory; every other output of this kind is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from collshim import Communicator
from tests.engine.worlds import attempt, on_ranks, world


def expanded(rank: int) -> Tensor:
    return torch.tensor([rank + 1.0, rank + 2.0]).expand(3, 2)


def windows(rank: int) -> Tensor:
    return torch.arange(rank + 1.0, rank + 5.0).as_strided((3, 2), (1, 1))


def inner(rank: int) -> Tensor:
    return torch.full((9,), rank + 1.0)[2:].as_strided((3, 2), (2, 0))


def strided_array(rank: int) -> Any:
    return np.lib.stride_tricks.as_strided(np.array([rank + 1.0, rank + 2.0]), (3, 2), (0, 8))


FORMS: dict[str, Callable[[int], Any]] = {
    "expanded": expanded,
    "windows": windows,
    "within a tensor": inner,
    "NumPy": strided_array,
    "0 to infinity": lambda rank: torch.tensor([float("inf"), float("nan")]).expand(3, 2),
}


def reduced(op: str) -> Any:
    comm, found = world(), {}
    for name, make in FORMS.items():
        ours, copy = make(comm.rank), make(comm.rank).copy() if name == "NumPy" else make(comm.rank).clone()
        for _ in range(2):  # the second one may reuse a plan
            comm.all_reduce(ours, op, out=ours).wait()
            comm.all_reduce(copy, op, out=copy).wait()
        found[name] = str(ours.tolist()) == str(copy.tolist())
    return found


@pytest.mark.parametrize("op", ["sum", "max", "avg"])
def test_all_reduce_in_place_matches_a_copy(op: str, transport: str) -> None:
    assert on_ranks(reduced, 2, transport, op) == [dict.fromkeys(FORMS, True)] * 2


def coalesced() -> Any:
    comm = world()
    ours = [expanded(comm.rank), torch.ones(2), windows(comm.rank)]
    copies = [one.clone() for one in ours]
    comm.all_reduce_coalesced(ours, out=ours).wait()
    comm.all_reduce_coalesced(copies, out=copies).wait()
    return [one.tolist() for one in ours] == [one.tolist() for one in copies]


def test_coalesced_calls_accept_expanded_tensors(transport: str) -> None:
    assert on_ranks(coalesced, 2, transport) == [True, True]


def clash() -> Any:
    comm = world()
    ours = expanded(0) if comm.rank == 0 else torch.arange(6.0).reshape(3, 2)
    told = attempt(lambda: comm.all_reduce(ours, out=ours).wait())
    return (
        told.raised[:1],
        "one value for all elements that share memory" in told.text,
        comm.all_gather_object(1).wait(),
    )


def test_different_values_for_shared_elements_are_refused(transport: str) -> None:
    assert on_ranks(clash, 2, transport) == [(("ArgumentValueError",), True, [1, 1]), ((), False, [1, 1])]


OTHERS: dict[str, Callable[[Communicator, Any], Any]] = {
    "another place": lambda comm, x: comm.all_reduce(torch.ones(3, 2), out=x),
    "broadcast": lambda comm, x: comm.broadcast(x, 0, out=x),
    "reduce": lambda comm, x: comm.reduce(x, comm.rank, out=x),
    "recv": lambda comm, x: comm.recv(1 - comm.rank, out=x),
}


def others() -> Any:
    comm = world()
    return {name: attempt(call, comm, expanded(0)).raised[:1] for name, call in OTHERS.items()}


def test_other_overlapping_outputs_are_refused(transport: str) -> None:
    assert on_ranks(others, 2, transport) == [dict.fromkeys(OTHERS, ("ArgumentValueError",))] * 2
