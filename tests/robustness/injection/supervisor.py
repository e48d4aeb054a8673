"""The processes of a trial: started, listened to, resumed if stopped, and ended; and what they left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from collshim.conformance.forkserver import context
from collshim.transports.rendezvous.serving import serve_store
from tests.ports import free_port, is_free
from tests.robustness.injection.heartbeat import Heartbeat
from tests.robustness.injection.partitions import Network, network
from tests.robustness.injection.rank import START, Ending, Place, main
from tests.robustness.injection.trial import Trial

HEALTHY_SECONDS = 40.0
"""Seconds after which ranks without a fault count as hung."""

HUNG_SECONDS = 6.0
"""Seconds after a fault and the deadline."""

LEAVING_SECONDS = 8.0
"""Seconds that processes get to end once their ranks have."""

_CHILDREN = threading.Lock()
"""Held when a process is started, inspected or closed: a start inspects all of them, and an exit code is read once."""

_PAUSE = 0.01


class Outcome(NamedTuple):
    """The outcome of a trial.

    Attributes:
        endings: by rank; a rank that died or hung has none.
        fault_at: when the fault happened, None if it did not.
        resumed_at: when a stopped rank was resumed.
        codes: the exit codes of the processes; None for one that had to be killed.
        lag: the most seconds that the machine was late to wake a sleeping thread.
        left: descriptions of what was left behind.
        log: the output of the processes.
    """

    endings: dict[int, Ending]
    fault_at: float | None
    resumed_at: float | None
    codes: dict[int, int | None]
    lag: float
    left: list[str]
    log: str
    seconds: float


def carry_out(trial: Trial) -> Outcome:
    """Run a trial, and end all of it."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="collshim-") as folder, network(trial) as net, Heartbeat() as heart:
        run = _Run(trial, Path(folder), net)
        try:
            run.listen()
            run.await_ends()
        finally:
            run.end()
        left = run.left()
        return Outcome(
            run.endings, run.fault_at, run.resumed_at, run.codes, heart.lag, left, run.log(), time.monotonic() - begun
        )


class _Run:
    def __init__(self, trial: Trial, folder: Path, net: Network) -> None:
        self.endings: dict[int, Ending] = {}
        self.fault_at: float | None = None
        self.resumed_at: float | None = None
        self.codes: dict[int, int | None] = {}
        self._trial = trial
        self._net = net
        self._folder = folder
        self._started: dict[int, float] = {}
        self._processes: dict[int, BaseProcess] = {}
        self._ends: dict[Connection, int] = {}
        self._store = serve_store("127.0.0.1") if trial.agent and trial.transport != "threads" else None
        self._port = free_port() if self._store is None else self._store.port
        (folder / "own").mkdir()
        for rank in [trial.victim] if trial.transport == "threads" else range(trial.size):
            self._start(rank)

    def _start(self, rank: int) -> None:
        server = context()
        ours, theirs = server.Pipe(duplex=False)
        log, own = str(self._folder / f"log{rank}"), str(self._folder / "own")
        place = Place(self._port, log, own, *self._net.place_of(rank))
        process = server.Process(target=main, args=(self._trial, rank, place, theirs), daemon=True)
        with _CHILDREN:
            process.start()
        theirs.close()
        self._processes[rank] = process
        self._ends[ours] = rank

    def listen(self) -> None:
        """Receive the ranks' reports until all have ended, or their time is over."""
        open_ends, limit = set(self._ends), time.monotonic() + START
        while open_ends and (now := time.monotonic()) < limit and not self._has_ended():
            pause = 0.05 if self._is_stopped() else limit - now
            for end in wait(list(open_ends), max(0.0, min(pause, limit - now))):
                if isinstance(end, Connection) and not self._hear(end):
                    open_ends.discard(end)
            self._let_go_on()
            limit = self._limit(limit)

    def _hear(self, end: Connection) -> bool:
        """Receive a report; return whether more may come."""
        try:
            what, rank, value = end.recv()
        except (EOFError, ConnectionError):
            return False
        if what == "started":
            self._started[rank] = value
        elif what == "ended":
            self.endings[rank] = value
        elif self.fault_at is None:
            self.fault_at = value
            self._net.cut()
        return True

    def _has_ended(self) -> bool:
        return not self._missing()

    def _missing(self) -> list[int]:
        """Return the ranks that should have ended, but have not."""
        may_be_missing = self.fault_at is not None and self._trial.fault.fate in ("dies", "stays")
        excused = self._trial.victim if may_be_missing else -1
        return [rank for rank in range(self._trial.size) if rank not in self.endings and rank != excused]

    def _limit(self, limit: float) -> float:
        trial = self._trial
        if self.fault_at is not None and trial.fault.fate != "healthy":
            return self.fault_at + trial.deadline + HUNG_SECONDS + (trial.seconds if trial.fault.beyond else 0.0)
        if len(self._started) == trial.size:
            return max(self._started.values()) + HEALTHY_SECONDS
        return limit

    def _is_stopped(self) -> bool:
        lasts = self._trial.detail == "SIGSTOP" and self._trial.fault.fate in ("healthy", "told")
        return lasts and self.fault_at is not None and self.resumed_at is None

    def _let_go_on(self) -> None:
        if self._is_stopped() and time.monotonic() >= (self.fault_at or 0.0) + self._trial.seconds:
            self.resumed_at = time.monotonic()
            os.kill(self._processes[self._trial.victim].pid or 0, signal.SIGCONT)

    def await_ends(self) -> None:
        """Wait for the processes to end once their ranks have, but not for those that stay."""
        stays = self._trial.fault.fate == "stays"
        missing = self._missing()
        if missing:
            self._print_stacks()
        limit = time.monotonic() + (0.3 if missing else LEAVING_SECONDS)
        for rank, process in self._processes.items():
            if not (stays and rank == self._trial.victim):
                while _exit_code(process) is None and time.monotonic() < limit:
                    time.sleep(_PAUSE)
        self.codes = {rank: _exit_code(process) for rank, process in self._processes.items()}

    def _print_stacks(self) -> None:
        """Write the stacks of hanging ranks into their logs."""
        for rank, process in self._processes.items():
            if rank not in self.endings and _exit_code(process) is None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid or 0, signal.SIGUSR1)

    def end(self) -> None:
        """End all processes."""
        self._pids = [process.pid or 0 for process in self._processes.values()]
        for process in self._processes.values():
            with _CHILDREN:
                process.kill()
                process.join()
                process.close()
        for end in self._ends:
            end.close()
        self._store = None

    def left(self) -> list[str]:
        """Return what the processes left behind: others that they started, files, the store's port."""
        found = [f"process {pid} in the session of a rank" for pid in _in_sessions(self._pids)]
        found += [f"file {path.name}" for path in (self._folder / "own").iterdir()]
        found += [f"shared memory {name}" for name in _shared_memory(self._pids)]
        if self._trial.transport != "threads" and not self._net.is_apart and not is_free(self._port):
            found.append(f"port {self._port}")
        return found

    def log(self) -> str:
        texts = {path.name: path.read_text(errors="replace") for path in sorted(self._folder.glob("log*"))}
        return "".join(f"--- {name}\n{text}" for name, text in texts.items() if text.strip())


def _exit_code(process: BaseProcess) -> int | None:
    with _CHILDREN:
        return process.exitcode


def _in_sessions(leaders: list[int]) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) in leaders and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def _shared_memory(pids: list[int]) -> list[str]:
    folder = Path("/dev/shm")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return [name for name in names if any(f"_{pid}_" in f"{name}_" for pid in pids)]
