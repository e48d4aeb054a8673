"""Ranks that are processes, each connected by a pipe to this one, in one collshim world over gloo.

They read torchrun's variables, as a launcher's ranks do. This process serves their store, as a launcher's agent does;
the system chooses the port.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from collshim.conformance.bindings.answers import Failure
from collshim.conformance.forkserver import context
from collshim.conformance.process_rank import main
from collshim.conformance.ranks import ADDRESS, START_SECONDS, Reply, Request, Serve, serve

_EXIT_SECONDS = 5.0  # from the end of a rank's pipe to the end of its process


class ProcessRanks:
    """Processes that are ranks, each with one end of a pipe; ``checks`` is whether they compare their calls."""

    def __init__(self, size: int, prefix: str = "collshim.", *, checks: bool = True, serve: Serve = serve) -> None:
        self._checks = checks
        self._serve = serve
        self._store = _serve_store()
        started = [self._start(rank, size, prefix) for rank in range(size)]
        self._pipes = [pipe for pipe, _ in started]
        self._processes = [process for _, process in started]

    def ask(self, requests: Sequence[Request]) -> None:
        """Send each rank its request; ``replies`` reports a process that has ended."""
        for pipe, request in zip(self._pipes, requests, strict=True):
            with suppress(BrokenPipeError, OSError):
                pipe.send(request)

    def replies(self, seconds: float) -> list[tuple[int, Reply]]:
        """Return the replies received so far, each with its rank; wait up to ``seconds`` for the first."""
        live = [pipe for pipe in self._pipes if not pipe.closed]
        ready: list[Any] = wait(live, seconds)
        return [(self._pipes.index(pipe), self._read(pipe)) for pipe in ready]

    def abandon(self, rank: int, why: str) -> None:
        """End the process of ``rank``, so that other ranks' waits for it fail at once."""
        self._processes[rank].kill()

    def close(self, seconds: float) -> list[str]:
        """End the processes, by force after ``seconds``, and the store; return no names, because none survive."""
        self.ask([None] * len(self._pipes))
        for process in self._processes:
            _end(process, seconds)
        for pipe in self._pipes:
            pipe.close()
        del self._store
        return []

    def _start(self, rank: int, size: int, prefix: str) -> tuple[Connection, BaseProcess]:
        server = context()
        ours, theirs = server.Pipe()
        with theirs:
            environment = os.environ | _launcher_variables(rank, size, self._store.port)
            environment |= {} if self._checks else {"COLLSHIM_CHECK": "0"}
            process = server.Process(target=main, args=(theirs, prefix, environment, self._serve), daemon=True)
            process.start()
        return ours, process

    def _read(self, pipe: Connection) -> Reply:
        try:
            found: Reply = pipe.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes[self._pipes.index(pipe)]
            _end(process, _EXIT_SECONDS)
            pipe.close()
            return Failure(("ProcessEnded",), f"the rank's process ended with status {process.exitcode}")
        return found


def _serve_store() -> Any:
    from torch.distributed import TCPStore

    seconds = timedelta(seconds=START_SECONDS)
    return TCPStore(ADDRESS, 0, is_master=True, timeout=seconds, wait_for_workers=False)


def _launcher_variables(rank: int, size: int, port: int) -> dict[str, str]:
    """Return the environment variables of a launcher that serves the store itself."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": ADDRESS,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "COLLSHIM_TIMEOUT": str(START_SECONDS),
    }


def _end(process: BaseProcess, seconds: float) -> None:
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
