"""All ranks of one run of a program: started, read until they end or run out of time, and ended."""

from __future__ import annotations

import threading
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from collshim.conformance.faults.program import SIZE
from collshim.conformance.faults.rank import PATIENCE, THREADS, Ending, Task, main
from collshim.conformance.forkserver import context
from collshim.transports.rendezvous.serving import serve_store

_LEAVING = 5.0
"""Seconds that a process may take to end after its ranks have reported how they ended."""

_STARTS = 4
"""How often a run is started if its ranks cannot make their world."""

_CHILDREN = threading.Lock()
"""Held while a process is started or closed: in Python 3.10 a start inspects what a close takes apart."""


class NotStartedError(RuntimeError):
    """A rank could not make its world: on a busy machine that alone may take longer than a program's deadline."""


class Run(NamedTuple):
    """The outcome of a run.

    Attributes:
        endings: how the program ended, by rank; a rank that died or hung has no entry.
        signals: the signal that ended a rank's process, by rank, except signals from this process.
        lingering: ranks whose program had ended but whose process was still running seconds later.
    """

    endings: dict[int, Ending]
    signals: dict[int, int]
    lingering: frozenset[int]


def run(face: str, name: str, part: str, *, deadline: float, patience: float) -> Run:
    """Run one part of a program on all ranks.

    Args:
        face: the way of running it, one of ``rank.FACES``.
        name: the name of the program.
        part: "fault" or "twin".
        deadline: seconds that a wait in a collective may take.
        patience: seconds after the start of the last rank at which a rank that has not ended counts as hung.

    Raises:
        NotStartedError: ranks failed several times to make a world.
    """
    failures = 0
    while True:
        try:
            return _run(face, name, part, deadline, patience)
        except NotStartedError:
            failures += 1
            if failures == _STARTS:
                raise


def _run(face: str, name: str, part: str, deadline: float, patience: float) -> Run:
    store = None if face == THREADS else serve_store("127.0.0.1")
    ranks = range(1) if store is None else range(SIZE)
    port = 0 if store is None else store.port
    with _Processes([Task(face, name, part, deadline, rank, port) for rank in ranks]) as processes:
        return processes.receive(patience)


class _Processes:
    """The processes of a run: one per rank, or a single one whose threads are the ranks."""

    def __init__(self, tasks: list[Task]) -> None:
        server = context()
        self._owner: dict[Connection, int] = {}
        self._processes: list[BaseProcess] = []
        self._started: set[int] = set()
        self._endings: dict[int, Ending] = {}
        for task in tasks:
            ours, theirs = server.Pipe(duplex=False)
            process = server.Process(target=main, args=(task, theirs), daemon=True)
            with _CHILDREN:
                process.start()
            theirs.close()
            self._owner[ours] = task.rank
            self._processes.append(process)

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()
            with _CHILDREN:
                process.close()
        for end in self._owner:
            end.close()

    def receive(self, patience: float) -> Run:
        limit = time.monotonic() + PATIENCE.total_seconds()
        open_ends = set(self._owner)
        while open_ends and time.monotonic() < limit:
            for end in wait(list(open_ends), max(0.0, limit - time.monotonic())):
                if isinstance(end, Connection) and not self._receives(end):
                    open_ends.discard(end)
            if len(self._started) == SIZE:
                limit = min(limit, self._begun + patience)
        return self._result()

    def _receives(self, end: Connection) -> bool:
        """Receive a message; return whether more may come from this end."""
        try:
            rank, ending = end.recv()
        except (EOFError, ConnectionError):
            return False
        if isinstance(ending, str):
            raise NotStartedError(f"rank {rank} could not start the program:\n{ending}")
        if ending is None:
            self._started.add(rank)
            self._begun = time.monotonic()
        else:
            self._endings[rank] = ending
        return True

    def _result(self) -> Run:
        hung = len(self._endings) < SIZE
        limit = time.monotonic() + (0.0 if hung else _LEAVING)
        for process in self._processes:
            process.join(max(0.2, limit - time.monotonic()))
        codes = self._codes()
        signals = {rank: -code for rank, code in codes.items() if code is not None and code < 0}
        lingering = set() if hung else {rank for rank, code in codes.items() if code is None}
        return Run(self._endings, signals, frozenset(lingering))

    def _codes(self) -> dict[int, int | None]:
        codes = [process.exitcode for process in self._processes]
        return dict(enumerate(codes if len(codes) == SIZE else codes * SIZE))
