"""The program of a rank that is a process: it runs the tests that it is sent, until its pipe closes."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import pytest

import collshim
from collshim import world
from collshim.calls.frames import without_library
from collshim.calls.site import how_it_failed, where_interrupted
from collshim.testing.body import Body, RankFixture
from collshim.testing.outcomes import UNKNOWN, Outcome
from collshim.testing.ranks import Ranks


class Settings(NamedTuple):
    """The settings of pytest's process that the ranks take over.

    Attributes:
        path: ``sys.path``; ``folder``: the working directory.
        arguments: those of pytest, of which the configuration follows.
        style: the style of tracebacks.
    """

    path: list[str]
    folder: str
    arguments: list[str]
    style: str


class Task(NamedTuple):
    """A test as it is sent to a rank."""

    function: Any
    instance: Any
    fixtures: Sequence[tuple[Any, RankFixture]]
    shared: Mapping[str, bytes]
    drawn: Mapping[str, bytes]
    argnames: tuple[str, ...]
    ranks: Ranks
    seed: int

    def body(self) -> Body:
        """Return the test, with its functions imported."""
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
            None if self.instance is None else find(self.instance)(),
            {name: pickle.loads(value) for name, value in self.drawn.items()},
        )


def serve(settings: Settings, pipe: Connection) -> None:
    """Run the tests that arrive, until the pipe closes."""
    with pipe:
        _take_over(settings)
        pipe.send_bytes(b"ready")
        while True:
            try:
                task = pipe.recv_bytes()
            except (EOFError, ConnectionError):
                return
            outcome = run(task, settings.style)
            outcome.error = None
            pipe.send_bytes(pickle.dumps(outcome))


def _take_over(settings: Settings) -> None:
    """Set up the process like that of pytest; then asserts of the modules imported later explain themselves."""
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.chdir(settings.folder)
    sys.path[:] = settings.path
    from _pytest.assertion import util
    from _pytest.config import _prepareconfig

    # without the options of the configuration, such as "-n 4", which are for pytest's own process
    config = _prepareconfig([*settings.arguments, "-o", "addopts=", "-p", "no:cacheprovider"])

    def explain(op: str, left: object, right: object) -> str | None:
        for lines in config.hook.pytest_assertrepr_compare(config=config, op=op, left=left, right=right):
            if lines:
                return "\n~".join(line.replace("\n", "\\n") for line in lines).replace("%", "%%")
        return None

    util._reprcompare = explain


def run(task: bytes, style: str) -> Outcome:
    """Run one test on this rank."""
    text, error = io.StringIO(), None
    with redirect_stdout(text), redirect_stderr(text):
        try:
            pickle.loads(task).body()()
        except BaseException as raised:
            error = raised
    outcome = Outcome.of(error)
    outcome.output = text.getvalue()
    if error is not None:
        world.announce_leaving(how_it_failed(error))
        info = pytest.ExceptionInfo.from_exception(without_library(error))
        outcome.shown = info.getrepr(style=style if style != "auto" else "long")  # type: ignore[arg-type]
    if isinstance(error, KeyboardInterrupt):  # of the pool, at the deadline
        outcome.kind, outcome.text = UNKNOWN, where_interrupted(error, collshim.current().last_call())
    return outcome


def find(place: Any) -> Any:
    """Import a function or a class."""
    found = _module(place.module, place.file)
    for name in place.path:
        found = getattr(found, name)
    return found


def _module(name: str, file: str) -> Any:
    """Import a module by its name, or if that is another file's, by its file."""
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
    spec.loader.exec_module(module)
    return module


def _plain_function(fixture: Any) -> Any:
    """Return the function of a fixture, as pytest stores it in the module."""
    if hasattr(fixture, "_get_wrapped_function"):  # pytest 8.4
        return fixture._get_wrapped_function()
    wrapped = getattr(fixture, "__pytest_wrapped__", None)
    return fixture if wrapped is None else wrapped.obj


def _inner(function: Any) -> Any:
    """Return the function of a test that Hypothesis calls."""
    handle = getattr(function, "hypothesis", None)
    return function if handle is None else handle.inner_test
