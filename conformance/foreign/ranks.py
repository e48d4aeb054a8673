"""Starts the ranks of a real framework, or of another module, and asks them through a socket.

A real framework's ranks are started by its own launcher, under any interpreter; a module's ranks with torchrun's
variables, under this one. They are restarted if an answer leaves the world unusable.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from collshim.conformance.bindings.answers import Answer, Failure
from collshim.conformance.foreign.wire import unpack
from collshim.conformance.recorder.dialects import Started, dialect
from collshim.conformance.recorder.jobs import free_port

SCRIPT = Path(__file__).with_name("rank.py")
START_SECONDS = 120.0  # for all ranks to connect; a framework may take long to import
_POLL_SECONDS = 0.2
_EXIT_SECONDS = 1.0  # from the end of a rank's socket to the end of its process
_PEERS_SECONDS = 5.0  # for the other ranks to answer after one has failed
_SENT_NOTHING = ("TypeError", "ValueError", "AssertionError", "IndexError", "AttributeError", "MissingFunctionError")
_NO_KERNEL = "unregistered|Kernel select failed|Create kernelmod|only support"  # MindSpore checks these before it sends
_LOG_CHARACTERS = 1500

Reply = Any  # Answer or Failure
Request = Any  # a binding's name and a case, or None


@dataclass(frozen=True)
class Foreign:
    """A subject outside collshim: a real framework, or a module that imitates one.

    Attributes:
        framework: the framework whose dialect is used.
        prefix: where its functions are found (see ``places``); empty for the real framework.
        python: the interpreter of the real framework's ranks.
        backend: the backend passed to torch's ``init_process_group``; "" for gloo.
        registers: the module that registers the backend; "" if that needs none.
    """

    framework: str
    prefix: str = ""
    python: str = sys.executable
    backend: str = ""
    registers: str = ""

    def ranks(self, size: int, prefix: str = "") -> ForeignRanks:
        """Return live ranks."""
        return ForeignRanks(size, self)

    def started(self, size: int, folder: Path) -> list[Started]:
        """Return the processes to start for a world of ``size``."""
        if not self.prefix:
            return dialect(self.framework).command(self.python, size, _WORLDS.get(self.framework, ""), _port(), folder)
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_port()), "WORLD_SIZE": str(size)}
        shared |= {
            "LOCAL_WORLD_SIZE": str(size),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        }
        own = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]
        return [Started([sys.executable], shared | one) for one in own]

    @property
    def program(self) -> list[str]:
        """The program to run: a file, if collshim cannot be imported."""
        return ["-m", f"{__package__}.rank"] if self.prefix else [str(SCRIPT)]


_WORLDS = {"tensorflow": "multiworker"}
_port = free_port


def _spoils(framework: str, reply: Reply) -> bool:
    """Return whether the world is unusable after this answer."""
    if not isinstance(reply, Failure) or reply.classes[0] in _SENT_NOTHING:
        return False
    return framework != "mindspore" or re.search(_NO_KERNEL, reply.message) is None


class ForeignRanks:
    """Processes that are ranks, each with one end of a socket."""

    def __init__(self, size: int, foreign: Foreign) -> None:
        self._size, self._foreign = size, foreign
        self._pipes: dict[int, Connection] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._folder: TemporaryDirectory[str] | None = None
        self._spoilt = True

    def ask(self, requests: Sequence[Request]) -> None:
        """Send each rank its request; start ranks first if there are none or their world is unusable."""
        if requests[0] is None:
            self._send(dict.fromkeys(self._pipes))
            return
        if self._spoilt:
            self._end()
            self._start()
        self._spoilt = False
        self._send({rank: (name, str(case)) for rank, (name, case) in enumerate(requests)})

    def replies(self, seconds: float) -> list[tuple[int, Reply]]:
        """Return the replies received so far, each with its rank; wait up to ``seconds`` for the first."""
        live = {pipe: rank for rank, pipe in self._pipes.items() if not pipe.closed}
        lost = [rank for rank in range(self._size) if rank not in self._pipes]
        if lost:
            return [(rank, self._failure("NoAnswer", "did not connect", rank)) for rank in lost]
        found = self._read_all(live, seconds)
        if any(isinstance(reply, Failure) for _, reply in found):
            found += self._read_rest(live, {rank for rank, _ in found})
        self._spoilt = self._spoilt or any(_spoils(self._foreign.framework, reply) for _, reply in found)
        return found

    def abandon(self, rank: int, why: str) -> None:
        """Do nothing: a launcher does not name a rank's process, and the pool replaces ranks that do not answer."""

    def close(self, seconds: float) -> list[str]:
        """End the processes and their children; return no names, because none survive."""
        self._end()
        return []

    def _send(self, requests: dict[int, Request]) -> None:
        for rank, request in requests.items():
            with suppress(OSError, KeyError):
                self._pipes[rank].send(request)

    def _start(self) -> None:
        self._folder = TemporaryDirectory(prefix="conformance")
        folder = Path(self._folder.name)
        with socket.socket(socket.AF_UNIX) as listener:
            address = str(folder / "socket")
            listener.bind(address)
            listener.listen(self._size)
            for one in self._foreign.started(self._size, folder):
                self._run(one, address, folder)
            self._pipes = self._accept_all(listener)

    def _run(self, started: Started, address: str, folder: Path) -> None:
        foreign = self._foreign
        arguments = [foreign.framework, foreign.prefix, address, foreign.backend, foreign.registers]
        with (folder / f"log.{len(self._processes)}").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [*started.before, *foreign.program, *arguments],
                    env=os.environ | started.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    start_new_session=True,
                )
            )

    def _accept_all(self, listener: socket.socket) -> dict[int, Connection]:
        """Return the connections of the ranks that connected in time: of all, unless one has ended."""
        listener.settimeout(_POLL_SECONDS)
        found: dict[int, Connection] = {}
        end = monotonic() + START_SECONDS
        while len(found) < self._size and monotonic() < end and not any(one.poll() for one in self._processes):
            with suppress(TimeoutError):
                caller = listener.accept()[0]
                caller.setblocking(True)
                pipe = Connection(caller.detach())
                found[pipe.recv()] = pipe
        return found

    def _read_all(self, live: dict[Connection, int], seconds: float) -> list[tuple[int, Reply]]:
        ready: list[Any] = wait(list(live), seconds) if live else []
        return [(live[pipe], self._read(live[pipe], pipe)) for pipe in ready]

    def _read_rest(self, live: dict[Connection, int], known: set[int]) -> list[tuple[int, Reply]]:
        """Read the other ranks' replies after a failure; in a new world they may be far behind."""
        end = monotonic() + _PEERS_SECONDS
        found: list[tuple[int, Reply]] = []
        while len(found) + len(known) < len(live) and monotonic() < end:
            left = {pipe: rank for pipe, rank in live.items() if rank not in known and rank not in dict(found)}
            found += self._read_all(left, max(0.0, end - monotonic()))
        return found

    def _read(self, rank: int, pipe: Connection) -> Reply:
        try:
            found: Answer | Failure = unpack(pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            pipe.close()
            return self._failure("ProcessEnded", f"ended{self._exit_code(rank)}", rank)
        return found

    def _exit_code(self, rank: int) -> str:
        """Return the exit code of a module's rank; a real framework's process may be a launcher."""
        if not self._foreign.prefix:
            return ""
        with suppress(subprocess.TimeoutExpired):
            return f", exit code {self._processes[rank].wait(_EXIT_SECONDS)}"
        return ""

    def _failure(self, name: str, what: str, rank: int) -> Failure:
        self._spoilt = True
        printed = self._log(f"log.{rank}" if self._foreign.prefix else "*log*")
        return Failure((name,), f"rank {rank} of {self._size} {what}" + (f"; printed: {printed}" if printed else ""))

    def _log(self, pattern: str) -> str:
        """Return the end of the output: one rank's for a module, all ranks' for a real framework."""
        files = sorted(Path(self._folder.name).rglob(pattern)) if self._folder else []
        texts = [path.read_text(errors="replace") for path in files if path.is_file()]
        return "\n".join(texts).strip()[-_LOG_CHARACTERS:]

    def _end(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in self._pipes.values():
            pipe.close()
        self._processes, self._pipes = [], {}
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
