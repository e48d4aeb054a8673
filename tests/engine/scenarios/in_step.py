"""Failures that each of three ranks notices at another time; then the values of the calls around them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.engine.worlds import attempt

SIZE = 3
_LENGTHS = {"small": 3, "large": 3000}


def _until_done(work: Work[Any]) -> None:
    limit = time.monotonic() + 5
    while not work.done() and time.monotonic() < limit:
        time.sleep(0.001)


def _total(comm: Communicator, length: int, number: float) -> Work[Tensor]:
    return comm.all_reduce(torch.full((length,), number * 10**comm.rank))


def _told(work: Work[Any]) -> Any:
    found = attempt(work.wait)
    return found.raised[0] if found.raised else float(found.value[0])


def in_flight(size: str, comm: Communicator) -> Any:
    """The first of three calls is a mismatch; rank 2 has noticed it when it posts the second."""
    length = _LENGTHS[size]
    first = _total(comm, length + comm.rank, 1)
    if comm.rank == 2:
        _until_done(first)
    second = _total(comm, length, 2)
    return [_told(first), _told(second), _told(_total(comm, length, 3))]


def unheard(size: str, comm: Communicator) -> Any:
    """Rank 2 never waits for the mismatch: return which wait raises it, and the results of the waits around it."""
    length = _LENGTHS[size]
    first = _total(comm, length + comm.rank, 1)
    if comm.rank < 2:
        assert _told(first) == "MismatchError"
    else:
        _until_done(first)
    second = _total(comm, length, 2)
    return [_told(second), _told(second), _told(_total(comm, length, 3))]


def late_heard(comm: Communicator) -> Any:
    """Post two calls after the failure: the first wait raises it, whichever it is, and the other one does not."""
    first = comm.all_reduce(torch.ones(3 + comm.rank))
    _until_done(first)
    second, third = _total(comm, 3, 2), _total(comm, 3, 3)
    return [_told(third), _told(second), _told(third), _told(first)]


def polled(comm: Communicator) -> Any:
    """Ask ``exception`` twice about a call after a failed one."""
    first = comm.all_reduce(torch.ones(3 + comm.rank))
    _until_done(first)
    second = _total(comm, 3, 2)
    _until_done(second)
    return [type(second.exception()).__name__, second.exception(), _told(second)]


def _mixed(comm: Communicator, wrong: bool) -> list[Tensor]:
    length = 2 + comm.rank if wrong else 2
    return [torch.ones(length), torch.ones(4, dtype=torch.int64), torch.ones(1, dtype=torch.float64)]


_COALESCED: dict[str, Callable[[Communicator, bool], Work[Any]]] = {
    "all_reduce_coalesced": lambda c, wrong: c.all_reduce_coalesced(_mixed(c, wrong)),
    "broadcast_coalesced": lambda c, wrong: c.broadcast_coalesced(_mixed(c, wrong), 1),
    "all_gather_coalesced": lambda c, wrong: c.all_gather_coalesced(_mixed(c, wrong)),
    "reduce_scatter_coalesced": lambda c, wrong: c.reduce_scatter_coalesced(
        [torch.stack([each] * SIZE) for each in _mixed(c, wrong)]
    ),
}


def coalesced(name: str, comm: Communicator) -> Any:
    """Post arrays of three dtypes of which the first does not match, waited for by two ranks; then two valid calls."""
    post = _COALESCED[name]
    failed = post(comm, True)
    told = attempt(failed.wait).raised[:1] if comm.rank else ("not waited for",)
    _until_done(failed)
    good = post(comm, False)
    heard = attempt(good.wait).raised[:1]
    return told, heard, [tuple(each.shape) for each in good.wait()], _told(_total(comm, 3, 1))


def uneven(comm: Communicator) -> Any:
    """Rank 0 gives an array of a dtype that the others lack: the collective that they share reports it."""
    arrays = [torch.ones(2), torch.ones(2, dtype=torch.int64)][: 1 if comm.rank else 2]
    return attempt(comm.all_reduce_coalesced(arrays, "sum").wait, 2.0).text.split("\n")[0]


_TOTALS = [222.0, 333.0]
_HEARD: list[Any] = ["MismatchError", *_TOTALS]

SCENARIOS: dict[str, tuple[Callable[[Communicator], Any], list[Any]]] = {
    **{f"in flight, {size}": (partial(in_flight, size), [_HEARD] * SIZE) for size in _LENGTHS},
    **{f"unheard, {size}": (partial(unheard, size), [[222.0, *_TOTALS]] * 2 + [_HEARD]) for size in _LENGTHS},
    "two calls behind": (late_heard, [["MismatchError", 222.0, 333.0, "MismatchError"]] * SIZE),
    "asked for its exception": (polled, [["MismatchError", None, 222.0]] * SIZE),
}
"""Each scenario, and the result of every rank."""

COALESCED = {name: partial(coalesced, name) for name in _COALESCED}
