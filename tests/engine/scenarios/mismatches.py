"""Mismatched calls of three ranks, and words of the error that every rank gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from collshim import Communicator
from tests.engine.worlds import attempt

SIZE = 3

One = Callable[[Communicator], Any]


class Mismatch(NamedTuple):
    """The calls of ranks 0, 1 and 2, and the beginning of the error."""

    calls: tuple[One, One, One]
    text: str


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype)


def _all_but_rank_1(usual: One, other: One) -> tuple[One, One, One]:
    return usual, other, usual


MISMATCHES: dict[str, Mismatch] = {
    "operation": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(3)), lambda c: c.broadcast(_x(3))),
        "all_reduce: ranks disagree on op: rank 1 has broadcast, the others all_reduce",
    ),
    "three operations": Mismatch(
        (lambda c: c.all_reduce(_x(3)), lambda c: c.all_gather(_x(3)), lambda c: c.barrier()),
        "all_reduce: ranks disagree on op: rank 0 has all_reduce, rank 1 has all_gather, rank 2 has barrier",
    ),
    "reduce op": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(3), "sum"), lambda c: c.all_reduce(_x(3), "max")),
        "all_reduce: ranks disagree on reduce op: rank 1 has max, the others sum",
    ),
    "factor": Mismatch(
        _all_but_rank_1(
            lambda c: c.all_reduce(_x(3), ("premul_sum", 2.0)), lambda c: c.all_reduce(_x(3), ("premul_sum", 3.0))
        ),
        "all_reduce: ranks disagree on factor: rank 1 has 3.0, the others 2.0",
    ),
    "root of a reduce": Mismatch(
        _all_but_rank_1(lambda c: c.reduce(_x(3), 0), lambda c: c.reduce(_x(3), 2)),
        "reduce: ranks disagree on root: rank 1 has 2, the others 0",
    ),
    "root of a broadcast": Mismatch(
        _all_but_rank_1(lambda c: c.broadcast(_x(3), 0), lambda c: c.broadcast(_x(3), 1)),
        "broadcast: ranks disagree on root: rank 1 has 1, the others 0",
    ),
    "root of a gather": Mismatch(
        _all_but_rank_1(lambda c: c.gather(_x(3), 0), lambda c: c.gather(_x(3), 1)),
        "gather: ranks disagree on root: rank 1 has 1, the others 0",
    ),
    "dtype": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(3)), lambda c: c.all_reduce(_x(3, dtype=torch.int32))),
        "all_reduce: ranks disagree on dtype: rank 1 has int32, the others float32",
    ),
    "shape of a reduction": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(3)), lambda c: c.all_reduce(_x(4))),
        "all_reduce: ranks disagree on shape: rank 1 has (4,), the others (3,)",
    ),
    "shape of as many elements": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(2, 3)), lambda c: c.all_reduce(_x(6))),
        "all_reduce: ranks disagree on shape: rank 1 has (6,), the others (2, 3)",
    ),
    "shape of large reductions": Mismatch(
        _all_but_rank_1(lambda c: c.all_reduce(_x(3000)), lambda c: c.all_reduce(_x(4000))),
        "all_reduce: ranks disagree on shape: rank 1 has (4000,), the others (3000,)",
    ),
    "shape of a gather": Mismatch(
        _all_but_rank_1(lambda c: c.all_gather(_x(3)), lambda c: c.all_gather(_x(4))),
        "all_gather: ranks disagree on shape: rank 1 has (4,), the others (3,)",
    ),
    "shape of what is broadcast": Mismatch(
        _all_but_rank_1(lambda c: c.broadcast(_x(3)), lambda c: c.broadcast(_x(4))),
        "broadcast: rank 0 sends rank 1 shape (3,), rank 1 expects (4,)",
    ),
    "shape of what is scattered": Mismatch(
        _all_but_rank_1(
            lambda c: c.scatter(_x(3, 2) if c.rank == 0 else None, 0, like=_x(2)),
            lambda c: c.scatter(None, 0, like=_x(5)),
        ),
        "scatter: rank 0 sends rank 1 shape (2,), rank 1 expects (5,)",
    ),
    "shape of what is exchanged": Mismatch(
        _all_but_rank_1(lambda c: c.all_to_all(_x(3, 2)), lambda c: c.all_to_all(_x(3, 4))),
        "all_to_all: rank 1 sends rank 0 shape (4,), rank 0 expects (2,)",
    ),
    "splits": Mismatch(
        _all_but_rank_1(
            lambda c: c.all_to_all([_x(1), _x(2), _x(1)], out=[_x(1), _x(3 if c.rank == 0 else 1), _x(1)]),
            lambda c: c.all_to_all([_x(4), _x(1), _x(1)], out=[_x(2), _x(1), _x(2)]),
        ),
        "all_to_all: rank 1 sends rank 0 shape (4,), rank 0 expects (3,)",
    ),
    "parts of a reduction": Mismatch(
        _all_but_rank_1(
            lambda c: c.reduce_scatter([_x(1), _x(2), _x(3)]), lambda c: c.reduce_scatter([_x(1), _x(2), _x(4)])
        ),
        "reduce_scatter: ranks disagree on shape: rank 1 has ((1,), (2,), (4,)), the others ((1,), (2,), (3,))",
    ),
    "a gathered list": Mismatch(
        _all_but_rank_1(
            lambda c: c.all_gather(_x(c.rank), out=[_x(0), _x(1), _x(2)]),
            lambda c: c.all_gather(_x(1), out=[_x(0), _x(1), _x(5)]),
        ),
        "all_gather: rank 2 sends rank 1 shape (2,), rank 1 expects (5,)",
    ),
}


def scenario(name: str, comm: Communicator) -> Any:
    """Make the mismatched calls; then a valid call in the same group."""
    calls = MISMATCHES[name].calls
    failed = attempt(lambda: calls[comm.rank](comm).wait())
    return failed.raised[:1], failed.text, comm.all_reduce(torch.tensor(comm.rank)).wait().item()


def unseen(comm: Communicator) -> Any:
    """A mismatch that rank 0 did not wait for is raised by the wait of its next call; the one after that is right."""
    work = comm.all_reduce(_x(3), "sum" if comm.rank else "max")
    if comm.rank:
        heard = attempt(work.wait)
        comm.barrier().wait()
    else:
        comm.subgroup([0])
        while not work.done():
            pass
        heard = attempt(comm.barrier().wait)
    return heard.raised[0], comm.all_reduce(torch.tensor(comm.rank)).wait().item()


def messages(kind: str, comm: Communicator) -> Any:
    """Send a message that differs from its receiver's expectation; the next one is right."""
    length = {"small": 3, "large": 3000}[kind]
    if comm.rank == 0:
        attempt(comm.send(_x(length), 1).wait)  # between threads the sender of a large one gets the error too
        comm.send(_x(2), 1).wait()
    elif comm.rank == 1:
        wrong = [attempt(comm.recv(0, like=like).wait) for like in (_x(length + 1), _x(2, dtype=torch.float64))]
        return [(found.raised[0], found.text.split("\n")[0]) for found in wrong]
    return None
