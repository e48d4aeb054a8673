"""Waits by two threads, after a close, without a limit, and with an invalid number of seconds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.engine.worlds import attempt, fresh

SIZE = 2
_LARGE = 1 << 20
_AGAIN = 100
_NUMPYS_FIVE: Any = np.float32(5)


def _both(work: Work[Any]) -> Any:
    """Let two threads wait for one work: return their first and last results, and whether they are one object."""
    got: list[Any] = [None, None]
    ends: list[Any] = [None, None]

    def wait(place: int) -> None:
        got[place] = attempt(work.wait)
        if not got[place].raised:  # read here: the other thread might still use it
            ends[place] = float(got[place].value[-1]), float(got[place].value[0])

    threads = [threading.Thread(target=wait, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if got[0].raised or got[1].raised:
        return [found.raised[0] for found in got]
    return ends, got[0].value is got[1].value


def _reduced(comm: Communicator) -> Any:
    """Reduce large data once, and smaller data repeatedly: both threads wake up while one of them divides the sum."""
    results = [_both(comm.all_reduce(torch.full((_LARGE,), float(comm.rank + 1)), "avg"))]
    for _ in range(_AGAIN):
        tensor = torch.full((_LARGE // 50,), float(comm.rank + 1))
        results.append(_both(comm.all_reduce(tensor, "avg", out=tensor)))
    return next((result for result in results if result != results[0]), results[0])


def _received(comm: Communicator) -> Any:
    if comm.rank == 0:
        comm.barrier().wait()
        comm.send(torch.full((_LARGE,), 7.0), 1).wait()
        return None
    work = comm.recv(0, like=torch.empty(_LARGE))
    comm.barrier().wait()
    return _both(work)


def _viewed(comm: Communicator) -> Any:
    """Count the runs of the view, which takes a while."""
    seen: list[int] = []

    def view(result: Tensor) -> Tensor:
        seen.append(1)
        time.sleep(0.05)
        return result

    found = _both(comm.all_reduce(torch.full((3,), float(comm.rank + 1))).then(view))
    return found, len(seen)


def _failed(comm: Communicator) -> Any:
    return _both(comm.all_reduce(torch.ones(2 + comm.rank)))


def _impatient(comm: Communicator) -> Any:
    """The second thread has less time than the first: return its error, and the work's final result."""
    if comm.rank == 0:
        comm.recv(1, like=torch.empty(1)).wait()
        return comm.all_reduce(torch.ones(1)).wait().item()
    work = comm.all_reduce(torch.ones(1))
    patient = threading.Thread(target=work.wait)
    patient.start()
    while not work.is_awaited:
        time.sleep(0.001)
    told = attempt(work.wait, 0.01).raised[0]
    comm.send(torch.ones(1), 0).wait()
    patient.join()
    return told, work.wait().item()


TOGETHER: dict[str, tuple[Callable[[Communicator], Any], list[Any]]] = {
    "an average": (_reduced, [([(1.5, 1.5)] * 2, True)] * SIZE),
    "a message": (_received, [None, ([(7.0, 7.0)] * 2, True)]),
    "a view": (_viewed, [(([(3.0, 3.0)] * 2, True), 1)] * SIZE),
}
CHECKED_TOGETHER: dict[str, tuple[Callable[[Communicator], Any], list[Any]]] = {
    "a mismatch": (_failed, [["MismatchError"] * 2] * SIZE),
    "one with less time": (_impatient, [2.0, ("DeadlineError", 2.0)]),
}


def _closed(length: int, in_place: bool, comm: Communicator) -> Any:
    """Return the result, or the class of the error, of a wait after the close."""
    given = torch.full((length,), float(comm.rank + 1))
    work = comm.all_reduce(given, out=given if in_place else None)
    work.free()
    comm.close()
    found = attempt(work.wait)
    return found.raised[0] if found.raised else float(found.value[-1])


def _barrier(comm: Communicator) -> Any:
    work = comm.barrier()
    work.free()
    comm.close()
    return attempt(work.wait).raised[:1]


CLOSED: dict[str, Callable[[Communicator], Any]] = {
    "small": lambda c: _closed(4, False, c),
    "small, in place": lambda c: _closed(4, True, c),
    "large": lambda c: _closed(100_000, False, c),
    "large, in place": lambda c: _closed(100_000, True, c),
}
TIMEOUTS: dict[str, tuple[Any, str]] = {
    "a string": ("x", "ArgumentTypeError"),
    "a boolean": (True, "ArgumentTypeError"),
    "a negative number": (-1, "ArgumentValueError"),
    "no number": (math.nan, "ArgumentValueError"),
}


def bad_timeout(name: str, comm: Communicator) -> Any:
    """Return the refusal; then the work's result."""
    work = comm.all_reduce(torch.ones(2))
    refused = attempt(work.wait, TIMEOUTS[name][0])
    return refused.raised[:1], refused.text, work.wait(_NUMPYS_FIVE).tolist()


def closed(name: str, comm: Communicator) -> Any:
    """Close on every rank before the wait; the group is the scenario's own."""
    return CLOSED[name](_own(comm))


def closed_barrier(comm: Communicator) -> Any:
    return _barrier(_own(comm))


def _own(comm: Communicator) -> Communicator:
    group = comm.subgroup(range(comm.size))
    assert group is not None
    return group


def without_its_peer() -> Any:
    """Rank 1 returns, and rank 0 polls."""
    comm = fresh()
    return _polled(comm.all_reduce(torch.ones(3))) if comm.rank == 0 else None


def past_the_deadline() -> Any:
    """Rank 1 is busy elsewhere, and rank 0 polls."""
    comm, other = fresh(), fresh()
    comm.timeout = 0.3
    found = _polled(comm.all_reduce(torch.ones(3))) if comm.rank == 0 else None
    other.barrier().wait()
    return found


def _polled(work: Work[Any]) -> Any:
    limit = time.monotonic() + 10
    while not work.done() and time.monotonic() < limit:
        time.sleep(0.005)
    return work.done(), attempt(work.wait).raised[0]


class _NoDivision:
    """While a rank is inside, no tensor of its process can be divided in place."""

    _lock, _inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            _NoDivision._inside += 1
            Tensor.div_ = _undivided  # type: ignore[method-assign]

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            _NoDivision._inside -= 1
            if not _NoDivision._inside:
                del Tensor.div_


def _undivided(*arguments: Any, **keywords: Any) -> Any:
    raise NotImplementedError("no division")


def undivided(comm: Communicator) -> Any:
    """Make an average whose last step fails on every rank; then a valid call."""
    with _NoDivision():
        work = comm.all_reduce(torch.ones(3000), "avg")
        found = [attempt(work.wait) for _ in range(2)]
    return [(each.raised[0], each.text) for each in found], comm.all_reduce(torch.ones(1)).wait().item()
