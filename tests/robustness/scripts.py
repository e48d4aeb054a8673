"""Processes that run a script, including ranks that are started as by a launcher: with torchrun's variables."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, NamedTuple

import torch

import collshim
from collshim.conformance.forkserver import context
from collshim.transports.rendezvous.making import await_makers
from collshim.transports.shared_memory.late_threads import hold_late_threads
from tests.ports import free_port

END_SECONDS = 60.0
COMMAND_SECONDS = 240.0
INTERRUPTED = 128 + signal.SIGINT
"""The exit code of a script that Ctrl-C ended."""

ROOT = str(Path(collshim.__file__).parent.parent)
_COMMAND = "import os, sys; os.chdir(sys.argv.pop(1)); from collshim.__main__ import main; sys.exit(main())"


class Ended(NamedTuple):
    """A process's exit code, None if it had to be killed, and its output."""

    code: int | None
    out: str
    errors: str


class Script:
    """A process that runs ``source`` with ``arguments`` like ``python -c``, and has imported torch already."""

    def __init__(self, source: str, *arguments: object, **variables: str) -> None:
        server = context()
        (stdin, ours), (out, stdout), (errors, stderr) = (server.Pipe(duplex=False) for _ in range(3))
        words = (source, *map(str, arguments))
        self._process = server.Process(target=_run, args=(words, environment(**variables), (stdin, stdout, stderr)))
        self._process.start()
        for theirs in (stdin, stdout, stderr):
            theirs.close()
        self._stdin, self.stdout, self.stderr = _stream(ours, "w"), _stream(out, "r"), _stream(errors, "r")

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop it with SIGSTOP and, if that is visible, wait until the last of its threads has stopped."""
        self.send_signal(signal.SIGSTOP)
        limit = monotonic() + END_SECONDS
        while any(_runs(thread) for thread in Path("/proc", str(self._process.pid), "task").glob("*/stat")):
            assert monotonic() < limit, "a thread of a stopped process still runs"
            sleep(0.001)

    def ended(self, seconds: float = END_SECONDS) -> Ended:
        """Return how it ended, and its unread output; kill it if it has not ended in time."""
        self._stdin.close()
        with ThreadPoolExecutor(2) as readers:  # a process with more output than a pipe holds would not end
            out, errors = (readers.submit(stream.read) for stream in (self.stdout, self.stderr))
            self._process.join(seconds)
            code = self._process.exitcode
            self._process.kill()
            return Ended(code, out.result(), errors.result())

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        for stream in (self._stdin, self.stdout, self.stderr):
            stream.close()


def _runs(thread: Path) -> bool:
    try:
        state = thread.read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:  # it has ended since
        return False
    return state not in "TZ"


def _stream(end: Connection, mode: str) -> IO[str]:
    with end:
        return os.fdopen(os.dup(end.fileno()), mode)


def _run(words: Sequence[str], variables: Mapping[str, str], streams: Sequence[Connection]) -> None:
    """Run the process: it ends like a script of the interpreter, with everything after the last line."""
    os.setsid()  # like a terminal's job
    for number, end in enumerate(streams):
        os.dup2(end.fileno(), number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv = ["-c", *words[1:]]
    os.environ.clear()
    os.environ.update(variables)
    torch.set_num_threads(1)
    _register_again()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = ctypes.pythonapi.PyRun_SimpleString(words[0].encode())
    interrupted = isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)
    ctypes.pythonapi.Py_Exit(INTERRUPTED if interrupted else -failed)


def _register_again() -> None:
    """Register what modules registered for the exit when they were imported: Python 3.14 drops it in a forked child."""
    finalize: Any = weakref.finalize
    for function in (finalize._exitfunc, await_makers, hold_late_threads):
        atexit.unregister(function)
        atexit.register(function)


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment, with the checkout in the path and without launchers' variables."""
    path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("RANK", "WORLD_", "MASTER_", "TF_"))
    }
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLLSHIM_TIMEOUT": "30"} | more


@contextmanager
def scripts(started: Sequence[Script]) -> Iterator[Sequence[Script]]:
    """Yield the processes, and kill those that still run at the end."""
    try:
        yield started
    finally:
        for script in started:
            script.close()


def ranks(source: str, size: int, *arguments: object, **variables: str) -> AbstractContextManager[Sequence[Script]]:
    """Start ``size`` scripts, each a rank of one world."""
    port = str(free_port())
    return scripts([Script(source, *arguments, **_launched(rank, size, port), **variables) for rank in range(size)])


def _launched(rank: int, size: int, port: str) -> dict[str, str]:
    own = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size)}
    return own | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def await_ends(started: Sequence[Script]) -> list[Ended]:
    """Return how they ended, within a minute."""
    limit = monotonic() + END_SECONDS
    return [script.ended(max(0.1, limit - monotonic())) for script in started]


def start_command(folder: Path, *words: object, **variables: str) -> Script:
    """Start ``collshim`` with these words, in that folder."""
    return Script(_COMMAND, folder, *words, **variables)


def run_command(folder: Path, *words: object, **variables: str) -> Ended:
    """Return how such a command ended."""
    with scripts([start_command(folder, *words, **variables)]) as started:
        return started[0].ended(COMMAND_SECONDS)


def start_program(source: str, **variables: str) -> subprocess.Popen[str]:
    """Start a separate Python that runs ``source``, in a session of its own; it may launch ranks that are processes."""
    return subprocess.Popen(
        [sys.executable, "-c", source],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    """Return how a program ended, within a minute."""
    try:
        out, errors = process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return Ended(None, *process.communicate())
    return Ended(process.returncode, out, errors)


def group_is_gone(group: int) -> bool:
    """Return whether no process of a session is left, within ten seconds."""
    limit = monotonic() + 10
    while monotonic() < limit:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        sleep(0.05)
    return False
