"""Ranks that stay up and are asked from outside: one that hangs or dies is a failure, and no end of the tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import collshim
from collshim.processes import Ranks
from tests.robustness.context import SIZE
from tests.robustness.drawing import Bad
from tests.robustness.rank import Reply, serve

START_SECONDS = 60.0
ANSWER_SECONDS = 50.0
END_SECONDS = 10.0


class Pool:
    """Live ranks of one transport; started when first asked, and anew after a failure."""

    def __init__(self, transport: str) -> None:
        self._transport = transport
        self._live: _Live | None = None

    def ask(self, bad: Bad) -> list[Reply]:
        """What every rank of the group saw, in its order.

        Raises:
            RuntimeError: ranks did not answer in time, or ended.
        """
        live = self._live = self._live or _Live(self._transport)
        try:
            return live.ask(bad)
        except BaseException:
            self._live = None
            live.close(by_force=True)
            raise

    def close(self) -> None:
        """End the ranks."""
        live, self._live = self._live, None
        if live is not None:
            live.close()

    def discard(self) -> None:
        """End ranks that may be out of step; the next request starts new ones."""
        live, self._live = self._live, None
        if live is not None:
            live.close(by_force=True)


class _Live:
    def __init__(self, transport: str) -> None:
        self._folder = TemporaryDirectory(prefix="collshim-")
        address = str(Path(self._folder.name, "pool"))
        self._processes: Ranks | None = None
        self._thread: threading.Thread | None = None
        with socket.socket(socket.AF_UNIX) as listener, collshim.options(check=True):
            listener.bind(address)
            listener.listen(SIZE)
            listener.settimeout(START_SECONDS)
            self._start(transport, address)
            self._pipes = _accepted(listener)

    def _start(self, transport: str, address: str) -> None:
        if transport == "processes":
            self._processes = Ranks(serve, SIZE, (address,))
            return
        self._thread = threading.Thread(target=_launch, args=(address,), daemon=True)
        self._thread.start()

    def ask(self, bad: Bad) -> list[Reply]:
        for pipe in self._pipes:
            pipe.send(bad)
        return [found for _, found in sorted(self._replies().items())]

    def _replies(self) -> dict[int, Reply]:
        found: dict[int, Reply] = {}
        end = monotonic() + ANSWER_SECONDS
        while len(found) < SIZE:
            awaited = {pipe: rank for rank, pipe in enumerate(self._pipes) if rank not in found}
            ready: list[Any] = wait(list(awaited), max(0.0, end - monotonic()))
            if not ready:
                raise RuntimeError(f"ranks {sorted(awaited.values())} did not answer, the others: {found}")
            for pipe in ready:
                found[awaited[pipe]] = _read(pipe, awaited[pipe])
        return found

    def close(self, by_force: bool = False) -> None:
        for pipe in self._pipes:
            _tell(pipe, by_force)
        if self._thread is not None:
            self._thread.join(END_SECONDS)
        if self._processes is not None:
            if not by_force:
                self._processes.results(END_SECONDS)
            self._processes.end()
        self._folder.cleanup()


def _launch(address: str) -> None:
    collshim.launch(serve, SIZE, args=(address,))


def _accepted(listener: socket.socket) -> Sequence[Connection]:
    found: dict[int, Connection] = {}
    for _ in range(SIZE):
        end, _address = listener.accept()
        pipe = Connection(end.detach())
        found[pipe.recv()] = pipe
    return [found[rank] for rank in range(SIZE)]


def _read(pipe: Connection, rank: int) -> Reply:
    try:
        reply: Reply = pipe.recv()
    except (EOFError, ConnectionError) as error:
        raise RuntimeError(f"rank {rank} has ended") from error
    return reply


def _tell(pipe: Connection, by_force: bool) -> None:
    """End a rank: by word, or by the end of its pipe."""
    if not by_force:
        pipe.send(None)
    pipe.close()
