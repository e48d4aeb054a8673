"""A debugger on a rank: pytest's own if the rank is a thread; pdb on pytest's terminal if it is a process.

One rank at a time has a debugger. If another rank reaches a breakpoint meanwhile, it continues, because the user may
step over a collective that it must join. Until the debugger ends, no deadline passes.
"""

from __future__ import annotations

import functools
import importlib
import pdb
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from collshim.launching.pausing import PAUSING
from collshim.world import peek

Ask = Callable[..., Any]

_INTERRUPTED = "\x03"
"""The line that a debugger reads if the user presses Ctrl-C."""


class Turn:
    """Tracks which rank of a test has the debugger."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rank: int | None = None
        self.on_leave: Callable[[], None] = lambda: None

    def take(self, rank: int) -> bool:
        """Give the debugger to a rank; return False if another rank has it."""
        with self._lock:
            if self._rank not in (None, rank):
                return False
            if self._rank is None:
                PAUSING.hold()
            self._rank = rank
            return True

    def leave(self, rank: int | None = None) -> bool:
        """End the debugger of ``rank``, or of any rank if it is None; return False if there is none to end."""
        with self._lock:
            if self._rank is None or rank not in (None, self._rank):
                return False
            self._rank = None
        PAUSING.go_on()
        self.on_leave()
        return True


TURN = Turn()


class _Passing:
    """Stands for the debugger of a rank that has none."""

    def set_trace(self, *_: object) -> None:
        """Do nothing: the program continues."""

    def runcall(self, call: Callable[..., Any]) -> Any:
        """Call a function without a debugger."""
        return call()


@contextmanager
def on_ranks(config: pytest.Config) -> Iterator[None]:
    """Let pytest's debugger open on one rank of a test at a time inside the block; its title names the rank."""
    from _pytest import debugging

    begin: Any = debugging.pytestPDB._init_pdb

    def begin_on_rank(method: str, *args: Any, **more: Any) -> Any:
        world = peek()
        if world is None or not world.is_thread:
            return begin(method, *args, **more)
        if not TURN.take(world.rank):
            return _Passing()
        return begin(method, *args, header=_title(config, method, world.rank, world.size), **more)

    def leave_to_rank(item: object) -> None:
        """Keep --trace from opening the debugger here: it opens on a rank."""

    with (
        patch.object(debugging.pytestPDB, "_init_pdb", begin_on_rank),
        patch.object(debugging, "wrap_pytest_function_for_tracing", leave_to_rank),
    ):
        yield


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that stops at its first line in pytest's debugger."""
    from _pytest import debugging

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        begin: Any = debugging.pytestPDB._init_pdb
        return begin("runcall").runcall(functools.partial(function, *args, **given))

    return call


@contextmanager
def post_mortem_by(call: Callable[[], bool]) -> Iterator[None]:
    """Replace pytest's post-mortem by ``call`` inside the block; ``call`` returns whether the user quits pytest."""
    from _pytest import debugging

    def post_mortem(_: object) -> None:
        if call():
            pytest.exit("Quitting debugger")

    with patch.object(debugging, "post_mortem", post_mortem):
        yield


def _title(config: pytest.Config, method: str, rank: int, size: int) -> str:
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    off = " (IO-capturing turned off)" if capture and capture.is_capturing() else ""
    return f"PDB {method} on rank {rank} of {size}{off}"


class Terminal:
    """The terminal of pytest's process, for the debugger of a rank's process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def answer(self, rank: int, size: int, what: str, text: str) -> Any:
        """Handle a debugger's request to "open" or "close", to "write" a text, or to "read" a line after a prompt."""
        if what == "open":
            return self._open(rank, size, text)
        if what == "read":
            return _line(text)
        if what == "write":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            self.close(rank)
        return None

    def _open(self, rank: int, size: int, method: str) -> bool:
        if not TURN.take(rank):
            return False
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        title = _title(self._config, method, rank, size)
        if capture:
            capture.suspend(in_=True)
        self._line(title)
        return True

    def close(self, rank: int) -> None:
        """Let the test continue, if this rank has the debugger."""
        if not TURN.leave(rank):
            return
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        self._line(f"PDB ends on rank {rank}")
        if capture:
            capture.resume()

    def _line(self, title: str) -> None:
        from _pytest.config import create_terminal_writer

        writer = create_terminal_writer(self._config)
        writer.line()
        writer.sep(">", title)


def _line(prompt: str) -> str:
    """Read a line from the terminal; return "" at the end of input."""
    try:
        return f"{input(prompt)}\n"
    except EOFError:
        return ""
    except KeyboardInterrupt:
        return _INTERRUPTED


class _Pipe:
    """The input and output of a debugger, through pytest's process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._rest = ""

    def write(self, text: str) -> int:
        """Send whole lines; the rest is kept as the prompt for the next line that is read."""
        lines, end, self._rest = (self._rest + text).rpartition("\n")
        if end:
            self._ask("write", f"{lines}\n")
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def readline(self, *_: int) -> str:
        """Return the line that the user types."""
        prompt, self._rest = self._rest, ""
        kept = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches pytest's process, which handles it
        try:
            line: str = self._ask("read", prompt)
        finally:
            signal.signal(signal.SIGINT, kept)
        if line == _INTERRUPTED:
            raise KeyboardInterrupt
        return line


class Debugger:
    """Creates the debuggers of a rank's process.

    Args:
        ask: sends a request to pytest's process; see ``Terminal.answer``.
        named: the module and the class that ``--pdbcls`` names; None for pdb.
    """

    def __init__(self, ask: Ask, named: tuple[str, str] | None) -> None:
        self._ask, self._named = ask, named

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let ``breakpoint()``, ``pdb.set_trace()`` and ``pytest.set_trace()`` open a debugger inside the block."""

        def set_trace(*_: object, **__: object) -> None:
            self._made("set_trace").set_trace(sys._getframe().f_back)

        with patch.object(pdb, "set_trace", set_trace), patch.object(pytest, "set_trace", set_trace):
            yield

    def traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that stops at its first line in the debugger."""

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            return self._made("runcall").runcall(function, *args, **given)

        return call

    def post_mortem(self, error: BaseException) -> bool:
        """Open the debugger at the line of an error; return whether the user quits the session."""
        debugger = self._made("post_mortem")
        debugger.reset()
        try:
            debugger.interaction(None, error if sys.version_info >= (3, 13) else error.__traceback__)
        except pytest.exit.Exception:
            return True
        debugger.close()
        return bool(debugger.quitting)

    def _made(self, method: str) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a debugger on a rank that is a process opens in the test's own thread only")
        base: Any = pdb.Pdb
        if self._named is not None:
            base = functools.reduce(getattr, self._named[1].split("."), importlib.import_module(self._named[0]))
        pipe = _Pipe(self._ask)
        class_: Any = type(base.__name__, (_OnProcess, base), {"ask": staticmethod(self._ask), "method": method})
        return class_(stdin=pipe, stdout=pipe, nosigint=True)


class _OnProcess(pdb.Pdb):
    """Overrides a debugger class for a rank's process: it opens on pytest's terminal, and closes there."""

    ask: Ask = staticmethod(lambda *_: None)
    method = ""
    streams: tuple[Any, Any] | None = None

    def interaction(self, *args: Any, **more: Any) -> Any:
        if self.streams is None:
            if not self.ask("open", self.method):
                return self.set_continue()
            self.streams = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = self.stdout
        return super().interaction(*args, **more)

    def close(self) -> None:
        if self.streams is not None:
            sys.stdout, sys.stderr = self.streams
            self.streams = None
            self.ask("close", "")

    def do_continue(self, arg: str) -> Any:
        done = super().do_continue(arg)
        self.close()
        return done

    do_c = do_cont = do_continue

    def do_quit(self, arg: str) -> Any:
        super().do_quit(arg)
        self.close()
        pytest.exit("Quitting debugger")

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> Any:  # noqa: N802
        done = super().do_EOF(arg)  # without a terminal, this fails the test, as in pytest's process
        self.close()
        return done
