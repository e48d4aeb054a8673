"""Ranks that are processes, each with a pipe to this one, in one collshim world over gloo.

They are started as a launcher starts them, with torchrun's variables, and this process serves their store as
a launcher's agent does: the port is the system's choice, and there is no process besides the ranks to be left
behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import collshim
from collshim.conformance.bindings.answers import Failure
from collshim.conformance.ranks import ADDRESS, START_SECONDS, Reply, Request

_EXIT_SECONDS = 5.0  # from the end of a rank's pipe to that of its process
_MODULE = "collshim.conformance.process_rank"


class ProcessRanks:
    """``size`` processes, each with its end of a pipe; ``checks`` says whether they compare their calls."""

    def __init__(self, size: int, prefix: str = "collshim.", *, checks: bool = True) -> None:
        self._checks = checks
        self._store = _served_store()
        started = [self._started(rank, size, prefix) for rank in range(size)]
        self._pipes = [pipe for pipe, _ in started]
        self._processes = [process for _, process in started]

    def ask(self, requests: Sequence[Request]) -> None:
        """Hand each rank its request; of one whose process has ended, ``replies`` tells."""
        for pipe, request in zip(self._pipes, requests, strict=True):
            with suppress(BrokenPipeError, OSError):
                pipe.send(request)

    def replies(self, seconds: float) -> list[tuple[int, Reply]]:
        """The replies that there are, each with its rank; waits ``seconds`` for the first."""
        live = [pipe for pipe in self._pipes if not pipe.closed]
        ready: list[Any] = wait(live, seconds)
        return [(self._pipes.index(pipe), self._read(pipe)) for pipe in ready]

    def abandon(self, rank: int, why: str) -> None:
        """End the process of ``rank``; the ranks that wait for it hear of that at once."""
        self._processes[rank].kill()

    def close(self, seconds: float) -> list[str]:
        """End the processes, after ``seconds`` by force, and the store; none are left."""
        self.ask([None] * len(self._pipes))
        for process in self._processes:
            _ended(process, seconds)
        for pipe in self._pipes:
            pipe.close()
        del self._store
        return []

    def _started(self, rank: int, size: int, prefix: str) -> tuple[Connection, subprocess.Popen[bytes]]:
        ours, theirs = Pipe()
        with theirs:
            fd = theirs.fileno()
            command = [sys.executable, "-m", _MODULE, str(fd), prefix]
            environment = os.environ | _launched(rank, size, self._store.port)
            environment |= {} if self._checks else {"COLLSHIM_CHECK": "0"}
            process = subprocess.Popen(command, env=environment, pass_fds=[fd], stdin=subprocess.DEVNULL)
        return ours, process

    def _read(self, pipe: Connection) -> Reply:
        try:
            found: Reply = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes[self._pipes.index(pipe)]
            status = _ended(process, _EXIT_SECONDS)
            pipe.close()
            return Failure(("ProcessEnded",), f"the rank's process ended with status {status}")
        return found


def _served_store() -> Any:
    from torch.distributed import TCPStore

    seconds = timedelta(seconds=START_SECONDS)
    return TCPStore(ADDRESS, 0, is_master=True, timeout=seconds, wait_for_workers=False)


def _launched(rank: int, size: int, port: int) -> dict[str, str]:
    """What a launcher that serves the store itself puts into a rank's environment."""
    root = str(Path(collshim.__file__).parent.parent)
    path = os.environ.get("PYTHONPATH")
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": "1",
        "COLLSHIM_TIMEOUT": str(START_SECONDS),
        "PYTHONPATH": root if not path else os.pathsep.join((root, path)),
    }


def _ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
