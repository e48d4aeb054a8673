"""Ranks as processes of this machine, started and ended together by their parent."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from secrets import token_hex
from typing import Any, NamedTuple, cast

import torch

from collshim import processors
from collshim.calls.cells import Cells, known, learn
from collshim.calls.frames import lines_of, traceback_of
from collshim.calls.site import not_returned, where_interrupted
from collshim.environment import forget_others
from collshim.errors import RankError, add_note, described, is_consequence, text_of
from collshim.launching import descendants
from collshim.launching.packing import pack
from collshim.launching.placement import take_gpu
from collshim.settings import Options, in_force
from collshim.settings import get as current_options
from collshim.standing_in import stand_in
from collshim.transports.rendezvous.serving import reach_store, serve_store

_HOST = "127.0.0.1"
_UNGUARDED = 112
"""The exit code of a rank that calls ``launch`` itself while it imports the script."""

_SETTLING = 0.5
"""How many seconds a rank that caused another rank's failure has to report its own."""

_GRACE = 2.0
"""How many seconds pass between asking a process to end and killing it."""


_USED = ("pytest", "hypothesis", "hypothesis.internal.conjecture.engine")
"""Modules that the server also imports if this process has imported them, as the ranks of tests do."""


class Task(NamedTuple):
    """The message that starts a rank's process.

    ``variables`` are the environment of the process that launches: the rank is forked from a server, which has that of
    the first launch.
    """

    rank: int
    size: int
    port: int
    secret: str
    work: bytes
    chosen: Options
    variables: dict[str, str]
    cells: Cells


class _RemoteError(Exception):
    """The traceback of a rank's process as text, used as a cause: tracebacks cannot be pickled.

    ``concurrent.futures`` does the same (Python 3.11).
    """

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Ranks:
    """Live processes, one per rank, that run one function; as a context manager it ends them.

    If there are ``pipes``, each rank's process receives its own pipe as the function's last argument.
    """

    def __init__(
        self, fn: Callable[..., Any], size: int, args: Sequence[Any] = (), pipes: Sequence[Connection] = ()
    ) -> None:
        if getattr(
            multiprocessing.current_process(), "_inheriting", False
        ):  # this is a rank that imports the script which calls launch
            os._exit(_UNGUARDED)  # the server that forked it would lose an exception's exit code
        self._store = serve_store(_HOST)
        work, secret = pack(fn, args), token_hex(32)
        context, cells = _context(), known()
        self._ends: list[Connection] = []
        self._processes: list[Any] = []
        for rank in range(size):
            end, end_of_rank = context.Pipe()
            task = Task(rank, size, self._store.port, secret, work, current_options(), dict(os.environ), cells)
            given = (task, end_of_rank, *pipes[rank : rank + 1])
            process = context.Process(target=_main, args=given, name=f"rank {rank} of {size}")
            process.start()
            end_of_rank.close()
            self._ends.append(end)
            self._processes.append(process)

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def results(self, timeout: float | None) -> list[Any]:
        """Return the results of all ranks; raise the first failure."""
        limit = None if timeout is None else time.monotonic() + timeout
        results: dict[int, Any] = {}
        try:
            while len(results) < len(self._ends):
                results.update(self._next(results, limit, timeout))
        except KeyboardInterrupt as interrupt:
            self._add_whereabouts(interrupt)
            raise
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.send_bytes(b"leave")
        return [results[rank] for rank in range(len(self._ends))]

    def _next(self, results: dict[int, Any], limit: float | None, timeout: float | None) -> dict[int, Any]:
        awaited = {end: rank for rank, end in enumerate(self._ends) if rank not in results}
        left = None if limit is None else max(0.0, limit - time.monotonic())
        ready = wait(list(awaited), left)
        if not ready:
            raise self._late(awaited, timeout)
        found, failures = self._read(ready)
        if failures:
            raise self._first(failures, awaited.keys() - ready)
        return found

    def _late(self, awaited: dict[Connection, int], timeout: float | None) -> RankError:
        """Return the error for ranks that have not returned; they are interrupted so that they say where they are."""
        self.interrupt(list(awaited.values()))
        said = self._interrupted(set(awaited), _GRACE)
        late = {
            rank: said.get(rank, "does not say where it is").partition("\n")[0] for rank in sorted(awaited.values())
        }
        return RankError(f"launch: {not_returned(late)} (within {timeout:g} s)", min(late), None, late)

    def _add_whereabouts(self, interrupt: KeyboardInterrupt) -> None:
        """Add a note of what each rank was doing when it was interrupted too, as by Ctrl-C at a terminal."""
        for rank, text in self._interrupted(set(self._ends), _SETTLING).items():
            add_note(interrupt, f"rank {rank} of {len(self._ends)} {text}")

    def _interrupted(self, others: set[Connection], seconds: float) -> dict[int, str]:
        """Return what each of these ranks was doing when it was interrupted, if it reports this in time."""
        limit, found = time.monotonic() + seconds, dict[int, str]()
        while others and (ready := wait(list(others), max(0.0, limit - time.monotonic()))):
            others.difference_update(cast("list[Connection]", ready))
            for failure in self._read(ready)[1]:
                if isinstance(failure.exception, KeyboardInterrupt):
                    found[failure.rank] = f"was {str(failure).partition('failed: ')[2]}"
        return found

    def _read(self, ends: Sequence[Any]) -> tuple[dict[int, Any], list[RankError]]:
        """Read the results of ranks, and the failures of ranks that ended without a result."""
        found, failures = dict[int, Any](), list[RankError]()
        for end in ends:
            rank = self._ends.index(end)
            try:
                found[rank] = self._outcome(rank, end)
            except RankError as failure:
                failures.append(failure)
        return found, failures

    def _first(self, failures: list[RankError], others: set[Connection]) -> RankError:
        """Return the failure that caused the others; if all of them blame another rank, wait briefly for it."""
        limit = time.monotonic() + _SETTLING
        while others and all(is_consequence(str(failure)) for failure in failures):
            ready = wait(list(others), max(0.0, limit - time.monotonic()))
            if not ready:
                break
            others.difference_update(cast("list[Connection]", ready))
            failures += self._read(ready)[1]
        causes = [failure for failure in failures if not is_consequence(str(failure))]
        return (causes or failures)[0]

    def _outcome(self, rank: int, end: Connection) -> Any:
        try:
            message = end.recv_bytes()
        except (EOFError, ConnectionError) as error:
            self._processes[rank].join(_GRACE)
            code = self._processes[rank].exitcode
            if code == _UNGUARDED:
                where = 'must be under if __name__ == "__main__":'
                raise RankError(f"launch: the ranks import this script, so its call {where}", rank, None) from None
            raise RankError(
                f"rank {rank} of {len(self._ends)} ended without a result, exit code {code}", rank, None
            ) from error
        kind, value, text, trace, lines = pickle.loads(message)
        if kind == "result":
            return self._result(rank, value)
        raised = _exception(value)
        failure = RankError(f"rank {rank} of {len(self._ends)} failed: {text}", rank, raised)
        failure.lines = lines
        raise failure from _with_traceback(raised, trace)

    def _result(self, rank: int, value: bytes) -> Any:
        try:
            return pickle.loads(value)
        except Exception as error:  # a class can raise anything if it can be unpickled only on the rank
            why = f"its return value cannot be read where launch was called: {described(error)}"
            raise RankError(f"rank {rank} of {len(self._ends)}: {why}", rank, None) from error

    def interrupt(self, ranks: Sequence[int]) -> None:
        """Raise KeyboardInterrupt in these ranks."""
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._processes[rank].pid, signal.SIGINT)

    def how_ended(self, rank: int) -> str:
        """Say with which exit code a rank's process ended, or by which signal."""
        self._processes[rank].join(_GRACE)
        code = self._processes[rank].exitcode
        if code is None or code >= 0:
            return f"with exit code {code}"
        return f"by {signal.Signals(-code).name}"

    def kill(self) -> None:
        """Kill the processes immediately, whatever they are doing; ``end`` waits until they have ended."""
        for process in self._processes:
            process.kill()

    def end(self) -> None:
        """End the processes that still run; return when all have ended.

        After a failure, also end the processes that the ranks have started, because nothing else would end them.
        """
        limit, started = time.monotonic() + _GRACE, list[descendants.Started]()
        if sys.exc_info()[0] is not None:
            alive = [process.pid for process in self._processes if process.is_alive()]
            started = [one for pid in alive for one in descendants.descendants(pid)]
            for process in self._processes:
                process.terminate()
        for process in self._processes:
            process.join(max(0.0, limit - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        descendants.end(started, _GRACE)
        for end in self._ends:
            end.close()


def _context() -> Any:
    """Return a context whose server, with torch already imported, forks the ranks if the OS can: they start faster."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["collshim.launching.preloaded", *(name for name in _USED if name in sys.modules)])
    return context


def _main(task: Task, end: Connection, *pipes: Connection) -> None:
    """Run a rank's process: join the world, run the function, report to the parent, and leave when it says so."""
    may_leave = threading.Event()
    threading.Thread(target=_follow, args=(end, may_leave), daemon=True).start()
    _set_environment(task)
    stand_in.follow_environment()
    learn(task.cells)
    process = os.getpid()
    try:
        with in_force(task.chosen):
            outcome = ("result", _run(task, pipes), "", "", list[str]())
    except BaseException as error:
        if os.getpid() != process:
            raise  # a process forked by the function must not report in this rank's name
        outcome = ("error", error, _text_of(error), traceback_of(error), lines_of(error))
    if os.getpid() != process:
        return
    end.send_bytes(_pickle(outcome))
    if outcome[0] == "error":
        descendants.end(descendants.descendants(process), _GRACE)
    try:
        if outcome[0] == "result":
            may_leave.wait()
            _warn_of_leaks()  # all other ranks' messages have arrived by now
    except Warning as error:  # warnings are errors here
        outcome = ("error", error, "", "", [])
        sys.stderr.write(traceback_of(error))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if outcome[0] == "result" else 1)  # gloo's and torch's threads would delay a normal exit


def _text_of(error: BaseException) -> str:
    from collshim import world

    own = world.peek()
    if isinstance(error, KeyboardInterrupt) and own is not None:
        return where_interrupted(error, own.last_call())
    return described(error)


def _run(task: Task, pipes: Sequence[Connection]) -> Any:
    from collshim import world

    take_gpu(task.rank)
    world.init(task.rank, task.size, store=reach_store(_HOST, task.port), address=_HOST, secret=task.secret)
    fn, args = pickle.loads(task.work)
    result = fn(*args, *pipes)
    world.announce_leaving("has returned from its function", stays=True)
    world.settle()
    return result


def _warn_of_leaks() -> None:
    from collshim import world

    world.warn_of_leaks()


def _set_environment(task: Task) -> None:
    os.environ.clear()
    os.environ.update(task.variables)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, processors.usable() // task.size))
    forget_others(os.environ)
    os.environ.update(
        RANK=str(task.rank),
        WORLD_SIZE=str(task.size),
        LOCAL_RANK=str(task.rank),
        LOCAL_WORLD_SIZE=str(task.size),
        MASTER_ADDR=_HOST,
        MASTER_PORT=str(task.port),
        TORCHELASTIC_USE_AGENT_STORE="True",
    )


def _follow(end: Connection, may_leave: threading.Event) -> None:
    """Set ``may_leave`` when the parent says so; exit immediately if the parent has ended, which closes the pipe."""
    try:
        end.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
    may_leave.set()


def _exception(value: bytes) -> BaseException | None:
    """Return the rank's exception, if it can be unpickled here."""
    try:
        exception = pickle.loads(value)
    except Exception:
        return None  # its text was sent too
    return exception if isinstance(exception, BaseException) else None


def _with_traceback(raised: BaseException | None, trace: str) -> BaseException | None:
    """Return the rank's exception, with the text of its traceback as cause; without an exception, return the cause."""
    where = _RemoteError(trace) if trace else None
    if raised is None:
        return where
    raised.__cause__ = where
    return raised


def _pickle(outcome: tuple[str, Any, str, str, list[str]]) -> bytes:
    """Pickle the outcome, and its value separately: a parent that cannot read the value can read the rest."""
    kind, value, text, trace, lines = outcome
    try:
        packed = pickle.dumps(value)
        pickle.loads(packed)
    except Exception as error:
        if kind != "error":
            text = f"its return value, a {type(value).__qualname__}, cannot be sent: {text_of(error)}"
        kind, packed = "error", pickle.dumps(None)
    return pickle.dumps((kind, packed, text, trace, lines))
