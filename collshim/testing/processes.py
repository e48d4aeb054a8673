"""Runs a test on ranks that are processes, which stay up between tests; after a failure they are replaced."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import Any, NamedTuple

from collshim.errors import ArgumentTypeError, RankError, add_note, text_of
from collshim.launching.pausing import PAUSING
from collshim.launching.processes import Ranks as Processes
from collshim.settings import options
from collshim.testing import worker
from collshim.testing.body import Body, RankFixture
from collshim.testing.debugging import Terminal
from collshim.testing.outcomes import PASSED, UNKNOWN, Outcome
from collshim.testing.ranks import Ranks
from collshim.testing.surroundings import Surroundings

_START_SECONDS = 60.0
"""Seconds that the processes have to start."""

_AFTER_FAILURE = 5.0
"""Seconds that the other ranks have after one has failed."""

_AFTER_INTERRUPT = 2.0
"""Seconds that ranks have to report where they were interrupted."""


OF_PYTEST = (
    "request",
    "pytestconfig",
    "cache",
    "record_property",
    "record_testsuite_property",
    "record_xml_attribute",
    "tmp_path_factory",
    "tmpdir_factory",
    "subtests",
)
"""pytest's fixtures that act on its own process."""


class Reference(NamedTuple):
    """A function that a rank's process imports.

    Attributes:
        module: the name of its module.
        file: the module's file.
        path: its qualified name in the module, split at the dots.
    """

    module: str
    file: str
    path: tuple[str, ...]


class KeptRanks:
    """The processes of one world."""

    def __init__(self, size: int, settings: worker.Settings, terminal: Terminal) -> None:
        """Start the processes.

        Raises:
            RankError: a process could not start.
        """
        pairs = [Pipe() for _ in range(size)]
        self._pipes = [ours for ours, _ in pairs]
        self._body: Any = None
        self._terminal = terminal
        with options(timeout=Ranks().timeout_of_calls()):
            self._processes = Processes(worker.serve, size, (settings,), [theirs for _, theirs in pairs])
        for _, theirs in pairs:
            theirs.close()
        try:
            self._await_start()
        except BaseException:
            self.close(kill=True)
            raise

    def _await_start(self) -> None:
        left: list[Any] = list(self._pipes)
        limit = time.monotonic() + _START_SECONDS
        while left:
            ready: list[Any] = wait(left, max(0.0, limit - time.monotonic()))
            for pipe in ready:
                try:
                    pipe.recv_bytes()
                except (EOFError, ConnectionError):
                    ready = []
                left.remove(pipe)
            if not ready:
                self._processes.results(_AFTER_FAILURE)  # raises the failure
                raise RankError("a rank's process ended before it was ready", 0, None)

    def run(self, task: bytes, body: Body) -> list[Outcome]:
        """Run a task on every rank; return the outcomes, by rank."""
        self._body = body
        for pipe in self._pipes:
            pipe.send_bytes(task)
        outcomes: dict[int, Outcome] = {}
        try:
            self._gather(outcomes, body.ranks.timeout)
        except KeyboardInterrupt as interrupt:
            self._interrupt(outcomes)
            for rank, outcome in sorted(outcomes.items()):
                add_note(interrupt, f"rank {rank} {outcome.kind}: {outcome.text}")
            raise
        if len(outcomes) < len(self._pipes):
            self._interrupt(outcomes)
        return [outcomes.get(rank, Outcome(UNKNOWN, "it does not respond")) for rank in range(len(self._pipes))]

    def _interrupt(self, outcomes: dict[int, Outcome]) -> None:
        """Interrupt the ranks that have not ended, and add their outcomes."""
        self._processes.interrupt([rank for rank in range(len(self._pipes)) if rank not in outcomes])
        self._gather(outcomes, _AFTER_INTERRUPT)

    def _gather(self, outcomes: dict[int, Outcome], seconds: float) -> None:
        """Add the outcomes that arrive within ``seconds``; after a failure, wait only a short time for the others."""
        limit = PAUSING.now() + seconds
        while len(outcomes) < len(self._pipes) and PAUSING.now() < limit:
            left: list[Any] = [pipe for rank, pipe in enumerate(self._pipes) if rank not in outcomes]
            ready: list[Any] = wait(left, max(0.0, limit - PAUSING.now()))
            for pipe in ready:
                message = self._read(self._pipes.index(pipe))
                if isinstance(message, Outcome):
                    outcomes[self._pipes.index(pipe)] = message
                    limit = limit if message.kind == PASSED else min(limit, PAUSING.now() + _AFTER_FAILURE)

    def _read(self, rank: int) -> Any:
        """Read a rank's message: return an outcome; answer a request and return None."""
        pipe = self._pipes[rank]
        try:
            message = pickle.loads(pipe.recv_bytes())
        except (EOFError, ConnectionError):
            message = Outcome(UNKNOWN, f"its process has ended {self._processes.how_ended(rank)}")
        if isinstance(message, worker.Asked):
            pipe.send_bytes(pickle.dumps(self._answer(rank, message)))
            return None
        self._terminal.close(rank)
        if isinstance(message, worker.Ended):
            self._body.noted.update({} if message.noted is None else {rank: message.noted})
            message = message.read()
        return message

    def _answer(self, rank: int, asked: worker.Asked) -> Any:
        if asked.what == worker.DEBUG:
            return self._terminal.answer(rank, len(self._pipes), *asked.given)
        return self._body.ask(asked.what, *asked.given, **asked.more)

    def post_mortem(self, rank: int) -> bool:
        """Open a debugger at the failure of a rank; return whether its user quits the session."""
        found = None
        try:
            self._pipes[rank].send_bytes(worker.POST_MORTEM)
        except OSError:
            found = worker.Debugged(False)  # its process has ended
        while found is None:
            found = self._read(rank)
        return isinstance(found, worker.Debugged) and found.quits

    def close(self, *, kill: bool) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        if kill:
            self._processes.kill()
        self._processes.end()


class Pool:
    """The processes that stay up between tests, by number of ranks."""

    def __init__(self, settings: worker.Settings, terminal: Terminal) -> None:
        self._settings, self._terminal = settings, terminal
        self._failed: KeptRanks | None = None
        self._kept: dict[int, KeptRanks] = {}

    def start(self, size: int) -> KeptRanks:
        """Return the processes of a world of this size; start them if there are none.

        Raises:
            RankError: a process could not start.
        """
        if size not in self._kept:
            self._kept[size] = KeptRanks(size, self._settings, self._terminal)
        return self._kept[size]

    def run(self, body: Body, ranks: Ranks) -> list[Outcome]:
        """Run a body on every rank; return the outcomes, by rank."""
        self._end_failed()
        task = pickle.dumps(sendable(body))
        kept = self.start(ranks.size)
        outcomes = kept.run(task, body)
        if any(outcome.kind != PASSED for outcome in outcomes):
            self._failed = self._kept.pop(ranks.size)
            if not self._settings.holds:
                self._end_failed()
        return outcomes

    def post_mortem(self, rank: int) -> bool:
        """Open a debugger at the last failure of a rank; return whether its user quits the session."""
        return self._failed is not None and self._failed.post_mortem(rank)

    def _end_failed(self) -> None:
        """End the processes of a test that has failed."""
        if self._failed is not None:
            self._failed.close(kill=True)
            self._failed = None

    def close(self) -> None:
        """End all processes."""
        self._end_failed()
        while self._kept:
            self._kept.popitem()[1].close(kill=False)


def sendable(body: Body) -> worker.Task:
    """Return a body in the form in which it is sent to a rank's process.

    Raises:
        ArgumentTypeError: a value or a function cannot be sent.
    """
    instance = None if body.instance is None else reference(type(body.instance))
    state = {} if body.instance is None else vars(body.instance)
    fixtures = [(reference(fixture.function), _plain(fixture)) for fixture in body.fixtures]
    return worker.Task(
        reference(body.function),
        instance,
        {name: _packed(f"self.{name}", value) for name, value in state.items()},
        fixtures,
        {name: _packed(name, value) for name, value in body.shared.items() if name in _needed(body)},
        {name: _packed(name, value) for name, value in body.drawn.items()},
        body.argnames,
        body.ranks,
        body.seed,
        Surroundings.here(),
        body.example,
    )


def _needed(body: Body) -> set[str]:
    of_fixtures = {name for fixture in body.fixtures for name in fixture.argnames}
    return {*body.argnames, *(of_fixtures - {"request"})}  # every rank makes its own request


def _plain(fixture: RankFixture) -> RankFixture:
    """Return a fixture without its function, which the rank's process imports itself."""
    return RankFixture(
        fixture.name, _nothing, fixture.argnames, fixture.takes_instance, fixture.has_param, fixture.param
    )


def _nothing() -> None:
    """Do nothing; stands in for a function that is not sent."""


def _packed(name: str, value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # a class may raise anything
        remedy = "use ranks that are threads"
        if not (name in OF_PYTEST or name.startswith("self.")):
            remedy = f"let {name!r} request `rank`, so that each rank sets it up, or {remedy}"
        raise ArgumentTypeError(
            f"the value of {name!r} cannot be sent to a rank's process ({text_of(error)}): {remedy}"
        ) from error


def reference(function: Callable[..., Any]) -> Reference:
    """Return the place that a function or a class can be imported from.

    Raises:
        ArgumentTypeError: it is local to a function.
    """
    module = sys.modules[function.__module__]
    path = tuple(function.__qualname__.split("."))
    if "<locals>" in path:
        raise ArgumentTypeError(
            f"{function.__qualname__} is local to a function, so a rank's process cannot import it: define it in the "
            "module, or use ranks that are threads"
        )
    return Reference(module.__name__, os.path.abspath(module.__file__ or ""), path)
