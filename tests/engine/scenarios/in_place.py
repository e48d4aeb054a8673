"""Outputs that overlap inputs: in place, in another rank's part, or across both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim import ArgumentValueError, Communicator
from tests.engine.scenarios.forms import LENGTHS, everyones, part, parts, total


def _all_reduce(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank)
    return comm.all_reduce(given, out=given).wait() is given, torch.equal(given, total(length, comm.size))


def _all_reduce_on_the_last_rank_only(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank)
    got = comm.all_reduce(given, out=given if comm.rank == comm.size - 1 else None).wait()
    kept = comm.rank == comm.size - 1 or torch.equal(given, part(length, comm.rank))
    return kept, torch.equal(got, total(length, comm.size))


def _reduce(comm: Communicator, length: int) -> Any:
    given, root = part(length, comm.rank), comm.size - 1
    comm.reduce(given, root, out=given).wait()
    wanted = total(length, comm.size) if comm.rank == root else part(length, comm.rank)
    return True, torch.equal(given, wanted)


def _broadcast(comm: Communicator, length: int) -> Any:
    given = part(length, comm.rank)
    return comm.broadcast(given, 0, out=given).wait() is given, torch.equal(given, part(length, 0))


def _all_gather_from(comm: Communicator, length: int, place: Callable[[int, int], int]) -> Any:
    out = torch.full((comm.size, 2, length), -1.0, dtype=torch.float64)
    mine = out[place(comm.rank, comm.size)]
    mine.copy_(part(length, comm.rank))
    comm.all_gather(mine, out=out).wait()
    return True, torch.equal(out, everyones(length, comm.size))


def _gather_from(comm: Communicator, length: int, place: Callable[[int, int], int]) -> Any:
    out = torch.full((comm.size, 2, length), -1.0, dtype=torch.float64)
    mine = out[place(comm.rank, comm.size)]
    mine.copy_(part(length, comm.rank))
    comm.gather(mine, 0, out=out).wait()
    return True, comm.rank > 0 or torch.equal(out, everyones(length, comm.size))


def _scatter_into(comm: Communicator, length: int, place: Callable[[int, int], int]) -> Any:
    given = parts(length, 0, comm.size)
    out = given[place(0, comm.size)] if comm.rank == 0 else torch.empty(2, length, dtype=torch.float64)
    comm.scatter(given if comm.rank == 0 else None, 0, out=out).wait()
    return True, torch.equal(out, part(length, 0, comm.rank))


def _reduce_scatter_into(comm: Communicator, length: int, place: Callable[[int, int], int]) -> Any:
    given = parts(length, comm.rank, comm.size)
    out = given[place(comm.rank, comm.size)]
    comm.reduce_scatter(given, out=out).wait()
    return True, torch.equal(out, total(length, comm.size, comm.rank))


def _all_to_all(comm: Communicator, length: int) -> Any:
    given = parts(length, comm.rank, comm.size)
    comm.all_to_all(given, out=given).wait()
    return True, torch.equal(given, everyones(length, comm.size, comm.rank))


def _all_to_all_of_lists(comm: Communicator, length: int) -> Any:
    given = list(parts(length, comm.rank, comm.size))
    comm.all_to_all(given, out=list(reversed(given))).wait()
    return True, torch.equal(torch.stack(given[::-1]), everyones(length, comm.size, comm.rank))


def _shifted(length: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return an input, and an output that begins within it."""
    memory = torch.zeros(2 * length + 1, dtype=torch.float64)
    given, out = memory[:-1].view(2, length), memory[1:].view(2, length)
    given.copy_(part(length, rank))
    return given, out


def _all_reduce_across(comm: Communicator, length: int) -> Any:
    given, out = _shifted(length, comm.rank)
    return _right_or_refused(lambda: comm.all_reduce(given, out=out).wait(), total(length, comm.size))


def _broadcast_across(comm: Communicator, length: int) -> Any:
    given, out = _shifted(length, comm.rank)
    return _right_or_refused(lambda: comm.broadcast(given, 0, out=out).wait(), part(length, 0))


def _right_or_refused(call: Callable[[], Tensor], wanted: Tensor) -> Any:
    try:
        return True, torch.equal(call(), wanted)
    except ArgumentValueError:
        return True, True


def _own(rank: int, size: int) -> int:
    return rank


def _next(rank: int, size: int) -> int:
    return (rank + 1) % size


def _first(rank: int, size: int) -> int:
    return 0


IN_PLACE: dict[str, Callable[[Communicator, int], Any]] = {
    "all_reduce": _all_reduce,
    "all_reduce on the last rank only": _all_reduce_on_the_last_rank_only,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather from its own part": partial(_all_gather_from, place=_own),
    "all_gather from the next part": partial(_all_gather_from, place=_next),
    "all_gather from the first part": partial(_all_gather_from, place=_first),
    "gather from its own part": partial(_gather_from, place=_own),
    "gather from the next part": partial(_gather_from, place=_next),
    "scatter into its own part": partial(_scatter_into, place=_own),
    "scatter into the next part": partial(_scatter_into, place=_next),
    "reduce_scatter into its own part": partial(_reduce_scatter_into, place=_own),
    "reduce_scatter into the next part": partial(_reduce_scatter_into, place=_next),
    "reduce_scatter into the first part": partial(_reduce_scatter_into, place=_first),
    "all_to_all": _all_to_all,
    "all_to_all of lists": _all_to_all_of_lists,
    "all_reduce across input and output": _all_reduce_across,
    "broadcast across input and output": _broadcast_across,
}


def in_place() -> dict[str, partial[Any]]:
    return {
        f"{name}, {length}": partial(scenario, length=LENGTHS[length])  # type: ignore[call-arg]
        for name, scenario in IN_PLACE.items()
        for length in LENGTHS
    }
