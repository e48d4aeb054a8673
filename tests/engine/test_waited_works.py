"""What a work keeps and raises once it was waited for, by two threads, or by a thread that was interrupted."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
import time
import warnings
import weakref
from typing import Any

import pytest
import torch

import collshim
from tests.engine.worlds import TRANSPORTS, attempt, on_ranks

pytestmark = pytest.mark.threads


class InterruptionError(Exception):
    """Thrown into a thread that waits."""


def keeps() -> tuple[bool, bool]:
    """Wait for a call of a subgroup, drop all but the work, and see whether group and input live on."""
    comm: Any = collshim.current().communicator.subgroup(range(collshim.current().size))
    x = torch.ones(10)[::2]
    work = comm.all_reduce(x)
    work.wait()
    references = weakref.ref(comm), weakref.ref(x)
    del comm, x
    gc.collect()
    lives = tuple(reference() is not None for reference in references)
    assert work.wait().tolist() == [float(collshim.current().size)] * 5
    return lives[0], lives[1]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("size", [1, 2])
def test_waited_work_keeps_neither_communicator_nor_input(transport: str, size: int) -> None:
    assert on_ranks(keeps, size, transport) == [(False, False)] * size


def wait_twice() -> list[str] | None:
    """Let a second thread wait with the communicator's deadline, which ends before the first thread's."""
    comm = collshim.current().communicator
    comm.timeout = 0.5
    if comm.rank == 1:
        time.sleep(1.0)
        comm.all_reduce(torch.ones(1)).wait(10)
        return None
    work = comm.all_reduce(torch.ones(1))
    first = threading.Thread(target=work.wait, args=(10,))
    first.start()
    while not work.is_awaited:
        time.sleep(0.001)
    found = [str(attempt(work.wait).value)]
    first.join()
    return found


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_second_thread_waits_as_long_as_the_first(transport: str) -> None:
    assert on_ranks(wait_twice, 2, transport)[0] == ["tensor([2.])"]


def interrupt() -> list[str] | None:
    """Throw an exception into the thread that waits, and wait again."""
    comm = collshim.current().communicator
    if comm.rank == 1:
        time.sleep(0.5)
        comm.all_reduce(torch.ones(1)).wait()
        return None
    work, own = comm.all_reduce(torch.ones(1)), ctypes.c_ulong(threading.get_ident())
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(0.1, throw, (own, ctypes.py_object(InterruptionError)))
    timer.start()
    with pytest.raises(InterruptionError):
        work.wait()
    timer.join()  # it is dropped here: Python ignores exceptions in the callbacks of weak references to it
    return [str(work.wait())]


@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_interrupted_wait_can_be_resumed(transport: str) -> None:
    assert on_ranks(interrupt, 2, transport)[0] == ["tensor([2.])"]


def scale() -> list[str]:
    comm = collshim.current().communicator
    return [str(comm.all_reduce(torch.ones(1), ("premul_sum", factor)).wait().item()) for factor in (0.0, -0.0, 0.0)]


def test_factors_that_differ_by_their_sign_differ() -> None:
    assert on_ranks(scale, 2, "threads") == [["0.0", "-0.0", "0.0"]] * 2


def moves_in_the_background() -> list[str]:
    """Wait for reductions in place that another thread is perhaps moving; return the warnings."""
    comm, x, pauses = collshim.current().communicator, torch.zeros(1 << 18), random.Random(collshim.current().rank)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(150):
            work = comm.all_reduce(x, out=x)
            time.sleep(pauses.choice([0.0, 0.0003, 0.003]))
            work.wait()
    return [str(warning.message) for warning in seen]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_own_writes_are_not_taken_for_the_programs(transport: str) -> None:
    assert on_ranks(moves_in_the_background, 2, transport) == [[], []]
