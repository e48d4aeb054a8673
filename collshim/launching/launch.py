"""``launch``: run a function on every rank of a new world, and return the ranks' results.

Examples:
    >>> import collshim, numpy as np
    >>> def total():
    ...     comm = collshim.current().communicator
    ...     return comm.all_reduce(np.array([comm.rank])).wait()
    >>> collshim.launch(total, 4)
    [array([6]), array([6]), array([6]), array([6])]
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from collshim.calls.frames import line_of_call, lines_of
from collshim.calls.site import caller, how_it_failed, not_returned
from collshim.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BrokenCommunicatorError,
    RankError,
    add_note,
    described,
)
from collshim.launching.pausing import PAUSING
from collshim.logs.files import how_to_read
from collshim.world import local_worlds, use

T = TypeVar("T")

_LONGEST = 1e6
"""The longest deadline in seconds, because the operating system's waits are limited to a few weeks."""

_GRACE = 2.0
"""How many seconds ranks have, once woken, to return before they are reported."""


def launch(
    fn: Callable[..., T], size: int, *, ranks: str = "threads", args: Sequence[Any] = (), timeout: float | None = None
) -> list[T]:
    """Run ``fn(*args)`` on ``size`` ranks; return their results, in rank order.

    Examples:
        >>> collshim.launch(lambda: collshim.current().communicator.all_reduce(torch.ones(2)).wait(), 2)
        [tensor([2., 2.]), tensor([2., 2.])]

    Args:
        fn: the function that every rank runs inside its world. If ranks are processes, it must be a function of a
            module, unless cloudpickle is installed.
        size: the number of ranks.
        ranks: "threads" of this process, which share its memory, or "processes" on this machine, which have this
            process's environment variables, as they are now, and its working directory.
        args: the arguments, which are the same for all ranks.
        timeout: how many seconds the ranks have to return; after that, the launch fails. None sets no limit, but every
            wait in a collective has its own deadline.

    Raises:
        RankError: a rank failed. The error names the first failure and its rank; its cause is the rank's exception with
            its traceback. The other ranks are woken and ended; on systems with ``/proc``, so are the processes that
            ranks in processes have started.
        ArgumentError: ``fn`` cannot be sent to a process, or the other arguments are out of range.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ArgumentValueError(f"launch: size is {size!r}, should be an int of at least 1")
    limit = _check_timeout(timeout)
    try:
        if ranks == "threads":
            return _Threads(fn, size, args).run(limit)
        if ranks == "processes":
            from collshim.launching.processes import Ranks

            with Ranks(fn, size, args) as processes:
                return processes.results(limit)
    except RankError as failure:
        exception = failure.exception
        failure.lines = failure.lines or (lines_of(exception) if exception else []) or [line_of_call(caller())]
        add_note(failure, how_to_read())
        raise
    raise ArgumentValueError(f'launch: ranks is {ranks!r}, should be "threads" or "processes"')


def _check_timeout(timeout: Any) -> float | None:
    """Return the deadline in seconds; None if no process would live that long."""
    expected = f"launch: timeout is {timeout!r}, should be a number of seconds from 0, or None"
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise ArgumentTypeError(expected)
    if not timeout >= 0:
        raise ArgumentValueError(expected)
    return None if timeout > _LONGEST else float(timeout)


class _Threads:
    """Ranks as threads of this process."""

    def __init__(self, fn: Callable[..., Any], size: int, args: Sequence[Any]) -> None:
        self._fn = fn
        self._args = args
        self._results: list[Any] = [None] * size
        self._failures: list[tuple[int, BaseException]] = []
        self._ended: set[int] = set()
        self._worlds = local_worlds(size)
        self._threads = [self._thread(rank) for rank in range(size)]

    def _thread(self, rank: int) -> threading.Thread:
        context = contextvars.copy_context()
        name = f"rank {rank} of {len(self._results)}"
        return threading.Thread(target=context.run, args=(self._rank, rank), name=name, daemon=True)

    def _rank(self, rank: int) -> None:
        try:
            with use(self._worlds[rank]), torch.autograd.set_multithreading_enabled(False):
                self._results[rank] = self._fn(*self._args)
            why = "has returned from its function"
        except BaseException as error:  # an exit or interrupt of one rank also ends the others
            self._failures.append((rank, error))
            why = how_it_failed(error)
        self._ended.add(rank)
        self._worlds.leave(rank, why)

    def run(self, timeout: float | None) -> list[Any]:
        """Start the ranks, wait for them, and raise the first failure."""
        try:
            self._await(None if timeout is None else PAUSING.now() + timeout)
            late = [rank for rank, thread in enumerate(self._threads) if thread.is_alive()]
            self._raise({rank: self._worlds.where(rank) for rank in late}, timeout)
        finally:
            self._end()
        return self._results

    def _await(self, limit: float | None) -> None:
        """Start the ranks and call ``_join``; if the user interrupts it, say where each rank is."""
        try:
            for thread in self._threads:
                thread.start()
            self._join(limit)
        except KeyboardInterrupt as interrupt:
            for rank in sorted({*range(len(self._threads))} - self._ended):  # join() marks it if interrupted
                add_note(interrupt, f"rank {rank} {self._worlds.where(rank)}")
            raise

    def _join(self, limit: float | None) -> None:
        for thread in self._threads:
            while thread.is_alive() and (limit is None or PAUSING.now() < limit):
                thread.join(0.05 if self._failures else _left(limit))
                limit = min(limit or float("inf"), PAUSING.now() + _GRACE) if self._failures else limit

    def _raise(self, late: dict[int, str], timeout: float | None) -> None:
        where = not_returned(late)
        if self._failures:
            rank, error = self._first()
            text = f"{described(error)}{f'; {where}' if late else ''}"
            raise RankError(f"rank {rank} of {len(self._results)} failed: {text}", rank, error, late) from error
        if late:
            raise RankError(f"launch: {where} (within {timeout:g} s)", min(late), None, late)

    def _first(self) -> tuple[int, BaseException]:
        """Return the first failure, except failures in a group that a different rank's failure had already ended."""
        first = self._failures[0]
        if isinstance(first[1], BrokenCommunicatorError):
            said = str(first[1])
            others = (one for one in self._failures[1:] if str(one[1]) and said.endswith(str(one[1])))
            return next(others, first)
        return first

    def _end(self) -> None:
        """Wake the ranks that still wait in a collective; a rank that is computing is left as a daemon thread."""
        for rank, thread in enumerate(self._threads):
            if thread.is_alive():
                self._worlds.leave(rank, "was ended by launch")
        self._worlds.close()
        limit = time.monotonic() + _GRACE
        for thread in self._threads:
            if thread.is_alive():  # an interrupt might have arrived before it started
                thread.join(max(0.0, limit - time.monotonic()))


def _left(limit: float | None) -> float:
    return 0.2 if limit is None else min(0.2, max(0.0, limit - PAUSING.now()))
