"""Functions of ranks of which one fails, for ranks as threads and as processes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any

import numpy as np
import torch

from tests.engine.worlds import Outcome, attempt, world


class OnPurposeError(Exception):
    """An exception that pickles and unpickles."""


class Unpicklable(Exception):  # noqa: N818
    """An exception that cannot be sent to another process."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raises() -> Any:
    comm = world()
    if comm.rank == 1:
        raise OnPurposeError("on purpose")
    return comm.all_reduce(torch.ones(3)).wait()


def raises_what_cannot_travel() -> Any:
    comm = world()
    if comm.rank == 1:
        raise Unpicklable(4, 2)
    return comm.all_reduce(torch.ones(3)).wait()


def raises_while_others_wait_for_messages() -> Any:
    comm = world()
    if comm.rank == 1:
        time.sleep(0.2)
        raise OnPurposeError("on purpose")
    return comm.recv(1, like=torch.ones(3)).wait()


def raises_while_others_compute() -> Any:
    if world().rank == 1:
        raise OnPurposeError("on purpose")
    time.sleep(0.5)
    return None


def two_raise() -> Any:
    """Let two ranks raise, rank 1 first."""
    comm = world()
    if comm.rank == 0:
        time.sleep(1)
    if comm.rank < 2:
        raise OnPurposeError(f"on rank {comm.rank}")
    return comm.barrier().wait()


def exits() -> Any:
    comm = world()
    if comm.rank == 1:
        sys.exit(7)
    return comm.all_reduce(torch.ones(3)).wait()


def ends_at_once() -> Any:
    comm = world()
    if comm.rank == 1:
        os._exit(7)
    return comm.all_reduce(torch.ones(3)).wait()


def is_killed() -> Any:
    comm = world()
    comm.barrier().wait()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return comm.all_reduce(torch.ones(3000)).wait()


def is_killed_while_others_compute() -> Any:
    if world().rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(30)
    return None


def returns_early() -> Any:
    """Rank 1 returns though the others call once more."""
    comm = world()
    return None if comm.rank == 1 else attempt(lambda: comm.all_reduce(torch.ones(3)).wait())


def returns_early_from_messages() -> Any:
    comm = world()
    if comm.rank == 1:
        return None
    source = 1 if comm.rank == 0 else None
    return attempt(lambda: comm.recv(source, like=torch.ones(3)).wait())


def sends_and_returns() -> Any:
    """Let a rank return after a send, before its message is received."""
    comm = world()
    if comm.rank == 1:
        comm.send(np.arange(3), 0).wait()
        return None
    time.sleep(0.7)
    return comm.recv(1, like=np.arange(3)).wait().tolist() if comm.rank == 0 else None


def starts_and_returns() -> Any:
    """Let a rank return after it started a collective, before the others join it."""
    comm = world()
    if comm.rank == 1:
        comm.all_reduce(torch.ones(3000)).free()
        return None
    time.sleep(0.7)
    return comm.all_reduce(torch.ones(3000)).wait().sum().item()


def peers_die_one_after_the_other() -> Any:
    """Return the error of a failed peer that a rank catches."""
    comm = world()
    if comm.rank == 1:
        raise OnPurposeError("on purpose")
    heard = attempt(lambda: comm.all_reduce(torch.ones(3)).wait())
    HEARD.append((comm.rank, heard))
    raise RuntimeError("told")


HEARD: list[tuple[int, Outcome]] = []


def returns_a_lambda() -> Any:
    return lambda: None


class OfOneProcess(Exception):  # noqa: N818
    """An exception, or a result, that only the process that made it can read."""

    def __reduce__(self) -> Any:
        return _read_by, (os.getpid(),)


def _read_by(process: int) -> OfOneProcess:
    if os.getpid() != process:
        raise OnPurposeError("in another process")
    return OfOneProcess(4)


def returns_what_its_process_alone_reads() -> Any:
    return OfOneProcess(4) if world().rank == 1 else None


def raises_what_its_process_alone_reads() -> Any:
    comm = world()
    if comm.rank == 1:
        raise OfOneProcess(4)
    return comm.all_reduce(torch.ones(3)).wait()


def stays() -> Any:
    """Rank 1 computes for longer than launch waits."""
    if world().rank == 1:
        time.sleep(8)
    return None


def stays_when_interrupted() -> Any:
    """Rank 1 ignores an interrupt."""
    end = time.monotonic() + 20
    while world().rank == 1 and time.monotonic() < end:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(1)
    return None


def waits_for_one_that_stays() -> Any:
    comm = world()
    if comm.rank == 1:
        time.sleep(8)
        return None
    return comm.all_reduce(torch.ones(3)).wait()


def dies_while_others_wait() -> None:
    world().barrier().wait()
    if world().rank == 1:
        os._exit(7)
    world().barrier().wait()


class NoTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def raises_without_a_text() -> None:
    if world().rank == 1:
        raise NoTextError
    world().barrier().wait()
