"""The program of a rank that is a process: it runs the tests that it receives, until its pipe closes."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import collshim
from collshim import world
from collshim.calls.site import how_it_failed, where_interrupted
from collshim.testing.body import Body, RankFixture
from collshim.testing.debugging import Debugger
from collshim.testing.of_pytest import Node, configured, thread_failures_reported
from collshim.testing.outcomes import SKIPPED, UNKNOWN, Outcome
from collshim.testing.ranks import Ranks
from collshim.testing.showing import Sent, Style, place_of
from collshim.testing.surroundings import Surroundings

DEBUG = "debug"
"""The name of the requests that a debugger sends."""

POST_MORTEM = b"post-mortem"
"""The message after which a rank opens a debugger at its last failure."""


class Settings(NamedTuple):
    """The settings of pytest's process that the ranks use too.

    Attributes:
        path: ``sys.path``.
        folder: the working directory.
        arguments: the arguments of pytest that determine its configuration.
        style: how failures are shown.
        captures: whether output is captured for the report instead of shown at once.
        pdbcls: the debugger class, if ``--pdbcls`` names one.
        traces: whether the debugger opens at the first line of a test.
        holds: whether a debugger may open after a failure.
    """

    path: list[str]
    folder: str
    arguments: list[str]
    style: Style
    captures: bool
    pdbcls: tuple[str, str] | None = None
    traces: bool = False
    holds: bool = False


class Task(NamedTuple):
    """A test in the form in which it is sent to a rank; ``state`` holds the attributes of the test class's object."""

    function: Any
    instance: Any
    state: Mapping[str, bytes]
    fixtures: Sequence[tuple[Any, RankFixture]]
    shared: Mapping[str, bytes]
    drawn: Mapping[str, bytes]
    argnames: tuple[str, ...]
    ranks: Ranks
    seed: int
    surroundings: Surroundings
    example: Any = None

    def body(self, node: Node, ask: Callable[..., Any]) -> Body:
        """Import the test's functions and return the test."""
        fixtures = []
        for place, fixture in self.fixtures:
            fixture.function = _plain_function(find(place))
            fixtures.append(fixture)
        return Body(
            self.ranks,
            _inner(find(self.function)),
            self.argnames,
            {name: pickle.loads(value) for name, value in self.shared.items()},
            self.seed,
            fixtures,
            self._instance(),
            node,
            {name: pickle.loads(value) for name, value in self.drawn.items()},
            self.example,
            ask,
        )

    def _instance(self) -> Any:
        if self.instance is None:
            return None
        class_ = find(self.instance)
        made = class_.__new__(class_)
        vars(made).update({name: pickle.loads(value) for name, value in self.state.items()})
        return made


class Asked(NamedTuple):
    """A rank's request to pytest's process, inside a test."""

    what: str
    given: tuple[Any, ...]
    more: dict[str, Any]


class Debugged(NamedTuple):
    """The end of a post-mortem."""

    quits: bool


class Ended(NamedTuple):
    """The end of a test in the form in which a rank sends it; ``noted`` is the rank's report to Hypothesis."""

    outcome: Outcome
    error: Sent | None
    noted: Any

    def read(self) -> Outcome:
        """Return the outcome, with the exception."""
        self.outcome.error = None if self.error is None else self.error.read()
        return self.outcome


def serve(settings: Settings, pipe: Connection) -> None:
    """Run the tests that arrive on the pipe, until it closes."""
    with pipe:
        os.chdir(settings.folder)
        sys.path[:] = settings.path
        config = configured(settings.arguments)
        pipe.send_bytes(b"ready")
        ask = partial(_ask, pipe)
        debugger = Debugger(partial(ask, DEBUG), settings.pdbcls)
        held: BaseException | None = None
        while True:
            try:
                received = pipe.recv_bytes()
            except (EOFError, ConnectionError):
                return
            if received == POST_MORTEM:
                answer: Any = Debugged(held is not None and debugger.post_mortem(held))
            else:
                answer, held = run(received, settings, Node(config), ask, debugger)
            pipe.send_bytes(pickle.dumps(answer))
            held = held if settings.holds else None


def _ask(pipe: Connection, what: str, *given: Any, **more: Any) -> Any:
    """Send a request to pytest's process; return its answer."""
    pipe.send_bytes(pickle.dumps(Asked(what, given, more)))
    return pickle.loads(pipe.recv_bytes())


def run(
    received: bytes, settings: Settings, node: Node, ask: Callable[..., Any], debugger: Debugger
) -> tuple[Ended, BaseException | None]:
    """Run one test on this rank; return how it ended, and the exception."""
    text, warned, error, body = io.StringIO(), list[bytes](), None, None
    with _captured(text if settings.captures else None), node.logging() as log:
        try:
            task = pickle.loads(received)
            with task.surroundings.taken_over(warned), debugger.installed():
                body = task.body(node, ask)
                body.traced = debugger.traced if settings.traces else None
                with thread_failures_reported():
                    body()
        except BaseException as raised:
            error = raised
    outcome = Outcome.of(error)
    outcome.output, outcome.log, outcome.warned, outcome.error = text.getvalue(), log.getvalue(), warned, None
    if error is not None:
        world.announce_leaving(how_it_failed(error))
        outcome.place = place_of(error) if outcome.kind == SKIPPED else None
        outcome.shown = settings.style.show(error, None if body is None else body.function)
    sent = None if error is None else Sent.of(error, outcome.kind)
    if isinstance(error, KeyboardInterrupt):  # the pool interrupts ranks at the deadline
        outcome.kind, outcome.text = UNKNOWN, where_interrupted(error, collshim.current().last_call())
        sent = None
    return Ended(outcome, sent, None if body is None else next(iter(body.noted.values()), None)), error


@contextmanager
def _captured(text: io.StringIO | None) -> Iterator[None]:
    if text is None:
        yield
        return
    with redirect_stdout(text), redirect_stderr(text):
        yield


def find(place: Any) -> Any:
    """Import a function or a class."""
    found = _module(place.module, place.file)
    for name in place.path:
        found = getattr(found, name)
    return found


def _module(name: str, file: str) -> Any:
    """Import a module by its name; if a different file's module has that name, import it by its file."""
    own = f"{name} of {file}"
    if own in sys.modules:
        return sys.modules[own]
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        module = None
    if module is not None and os.path.abspath(module.__file__ or "") == file:
        return module
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{file} cannot be imported", name=name)
    module = sys.modules[own] = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)  # pickled exceptions refer to it by name
    spec.loader.exec_module(module)
    return module


def _plain_function(fixture: Any) -> Any:
    """Return the function of a fixture, which pytest has replaced in the module by its own object."""
    if hasattr(fixture, "_get_wrapped_function"):  # pytest 8.4
        return fixture._get_wrapped_function()
    wrapped = getattr(fixture, "__pytest_wrapped__", None)
    return fixture if wrapped is None else wrapped.obj


def _inner(function: Any) -> Any:
    """Return the function that Hypothesis calls for a test."""
    handle = getattr(function, "hypothesis", None)
    return function if handle is None else handle.inner_test
