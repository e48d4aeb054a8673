"""Waits that a signal's handler interrupts, that a peer ends at the end of their slice, or after the deadline."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import torch

from collshim import Communicator
from collshim.transports.waiting import FIRST_SLICE
from tests.engine.worlds import Outcome, attempt, fresh, world

APART = 0.4
"""Seconds from the signal until the other rank comes."""

LARGE = 300_000
"""Elements of a message that is offered, and follows when accepted."""


SHORT, LONG = 1.0, 60.0
"""Seconds of a deadline that should pass, and of one that should not."""

ROUNDS = 20
STEP = 0.0002
"""Seconds between the moments at which a peer comes."""

LENGTHS = (3, 300_000)


class MineError(RuntimeError):
    """The handler's own error."""


def _all_reduce(comm: Communicator, length: int) -> Any:
    return comm.all_reduce(torch.full((length,), comm.rank + 1.0))


def _message(comm: Communicator, length: int) -> Any:
    if comm.rank == 0:
        return comm.recv(1, like=torch.zeros(length))
    return comm.send(torch.full((length,), 3.0), 0)


def _barrier(comm: Communicator, length: int) -> Any:
    return comm.barrier()


CALLS: dict[str, tuple[Callable[[Communicator, int], Any], int]] = {
    "all_reduce": (_all_reduce, 3),
    "a large all_reduce": (_all_reduce, LARGE),
    "recv": (_message, 3),
    "a large recv": (_message, LARGE),
    "barrier": (_barrier, 0),
}


SECONDS = {"early": 0.1, "late": 0.5}
"""The moment of the signal: in the first slice of the wait, or in a later one."""


def broken_off(name: str) -> dict[str, Any]:
    """Return rank 0's first error and second result, by the moment of the signal; and the world's next call."""
    start, length = CALLS[name]
    found = {when: _broken_off(start, length, seconds) for when, seconds in SECONDS.items()}
    return found | {"next": int(world().all_reduce(torch.tensor(1)).wait())}


def _broken_off(start: Callable[[Communicator, int], Any], length: int, seconds: float) -> Any:
    comm = world()
    comm.barrier().wait()
    if comm.rank:
        time.sleep(seconds + APART)
        start(comm, length).wait()
        return None
    work, raised = start(comm, length), "nothing"

    def raises(number: int, frame: FrameType | None) -> None:
        raise MineError("from the handler")

    before = signal.signal(signal.SIGALRM, raises)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        work.wait()
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    again = attempt(work.wait)
    return [raised, again.text if again.raised else None if again.value is None else sorted(set(again.value.tolist()))]


def thrown(name: str) -> Any:
    """Return the error of rank 0's wait that another thread threw into, and the result when it was resumed."""
    comm, (start, length) = world(), CALLS[name]
    comm.barrier().wait()
    if comm.rank:
        time.sleep(SECONDS["late"] + 1.0 + APART)
        start(comm, length).wait()
        return None
    here = ctypes.c_ulong(threading.get_ident())

    def throws() -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(MineError))

    work, timer = start(comm, length), threading.Timer(SECONDS["late"], throws)
    timer.start()
    raised = attempt(work.wait).raised
    timer.join()
    again = attempt(work.wait)
    return raised[:1], again.text


def awaits_any() -> Any:
    """Rank 0 receives from any rank, while the others do nothing."""
    comm = world()
    if comm.rank == 0:
        return attempt(lambda: comm.recv(None, like=torch.zeros(3)).wait())
    time.sleep(1.5)
    return None


def meets_at_the_end_of_a_slice() -> Any:
    """Count the successful calls; rank 1 comes a little before the end, at it, and a little after it."""
    comm, right = world(), 0
    for place in range(ROUNDS):
        length = LENGTHS[place % 2]
        comm.barrier().wait()
        if comm.rank:
            time.sleep(FIRST_SLICE + (place // 2 % 15 - 8) * STEP)
        total = comm.all_reduce(torch.full((length,), comm.rank + place)).wait()
        right += bool((total == 2 * place + 1).all())
    return right


class Seen(NamedTuple):
    """A rank's error at its wait and at another one after the late rank called; and the output.

    The late rank calls twice.
    """

    first: Outcome
    again: Outcome
    place: list[float]


def late_by_another_clock(length: int, behind: float) -> Seen:
    """Run ``late`` with the clocks of rank 2 behind, like another host's; they stay behind by as much."""
    if world().rank == 2:
        for name in ("time", "monotonic"):
            setattr(time, name, partial(_behind, getattr(time, name), behind))
    return late(length)


def _behind(clock: Callable[[], float], seconds: float) -> float:
    return clock() - seconds


def late(length: int) -> Seen:
    """Rank 2 calls after the others gave up."""
    control, comm = fresh(), fresh()
    control.timeout, comm.timeout = LONG, SHORT
    place = torch.full((length,), -1.0)
    if comm.rank == 2:
        control.barrier().wait()
        first, again = (attempt(lambda: comm.all_reduce(torch.ones(length), out=place).wait()) for _ in range(2))
        control.barrier().wait()
    else:
        work = comm.all_reduce(torch.ones(length), out=place)
        first = attempt(work.wait)
        control.barrier().wait()
        control.barrier().wait()
        again = attempt(work.wait)
    return Seen(first, again, place[:3].tolist())
