"""collshim's plugin for pytest: tests on several ranks, and the options of the conformance suite.

    @pytest.mark.ranks(4)
    def test_total(rank, comm): ...

    pytest --pyargs collshim.conformance --collshim-adapter mypkg.dist --collshim-framework torch

If collshim is installed, pytest imports this module in every run. It is outside the package, because the package
imports torch. It imports from the package only when a test has the marker or one of the options is used.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Generator
from typing import Any, NoReturn

import pytest

MARKER = (
    "ranks(*sizes, processes=False, timeout=60.0, default_group=True, clock='system'): run the test on this many "
    "ranks at once, as threads or processes; with several sizes, once for each size"
)
TRANSPORTS = ("threads", "processes")  # not imported from the package: that would import torch

SUITE = "collshim.conformance"

SHORT = ("adapter", "dialect", "framework", "transport", "backend", "kinds", "collective", "size", "case")
"""Options that a run of the suite also accepts under the names that the command has for them."""

NARROWING = ("transport", "collective", "size", "case", "xfails_file", "skips_file", "kinds", "timeout")
"""Options that select cases of a framework's functions, or say how to run them."""


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"the size of a world is {text}, should be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"the timeout is {text}, should be a number of seconds above 0")
    return seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    group = parser.getgroup("collshim", f"conformance suite (pytest --pyargs {SUITE})")

    def add(name: str, text: str, **more: Any) -> None:
        group.addoption(f"--collshim-{name}", help=text, **more)

    add(
        "adapter",
        "the module to test instead of the framework's main module (torch.distributed, oneflow, mindspore, tensorflow, "
        "megengine), or of the module before the '=': oneflow.comm=mypkg.comm; default: collshim's adapter",
        metavar="MODULE",
    )
    add("framework", "the framework whose functions the module has: torch, oneflow, ...", metavar="NAME")
    text = "the kind of ranks; default for a module: processes, because only collshim's own ranks can be threads"
    add("transport", text, action="append", choices=TRANSPORTS)
    add("backend", "the backend of torch.distributed or of the module: gloo, collshim, ...", metavar="NAME")
    add("import", "the module that every rank imports first, to register a backend", metavar="MODULE")
    add("collective", "run only this row of the report; can be repeated", action="append", metavar="ROW")
    add("size", "run only worlds of this size; can be repeated", action="append", type=_size, metavar="N")
    add("case", "run only this case, as a run prints it: [FUNCTION: ]Case(...)", metavar="CASE")
    add("xfails-file", "a file of functions or cases that are known to fail, one per line", metavar="FILE")
    add("skips-file", "a file of functions or cases to skip, one per line", metavar="FILE")
    add("kinds", "the kind of arrays: torch or numpy; can be repeated", action="append", metavar="KIND")
    add("timeout", "the time that the ranks have to answer a case", type=_seconds, metavar="SECONDS")
    add("allow-missing", "run even if the module has none of the functions", action="store_true")


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Accept the short names of the options, only in a run of the suite."""
    if not any(argument.startswith(SUITE) for argument in args):
        return
    for place, argument in enumerate(args):
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in SHORT:
            args[place] = f"--collshim-{'framework' if name == 'dialect' else name}{equals}{value}"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and pass the options to the suite if one is used."""
    config.addinivalue_line("markers", MARKER)
    adapter, backend = config.getoption("collshim_adapter"), config.getoption("collshim_backend")
    registers = config.getoption("collshim_import")
    framework = config.getoption("collshim_framework") or ("torch" if backend else None)
    wrong, used = "", [name for name in NARROWING if config.getoption(f"collshim_{name}") is not None]
    if adapter and not framework:
        wrong = f"--collshim-adapter {adapter} needs --collshim-framework, the framework whose functions it has"
    elif used and not framework:
        wrong = f"--collshim-{used[0].replace('_', '-')} needs --collshim-framework, the framework to test"
    elif registers and not backend:
        wrong = f"--collshim-import {registers} needs --collshim-backend, the name of the backend that it registers"
    if wrong:
        raise pytest.UsageError(wrong)
    if framework:
        from collshim.conformance.plugin import configure

        configure(config, framework)


def _marker(node: Any) -> pytest.Mark | None:
    found: pytest.Mark | None = node.get_closest_marker("ranks")
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> None:
    """Let tests on ranks depend on the fixture that describes the ranks."""
    own = getattr(obj, "pytestmark", [])
    if collector.istestfunction(obj, name) and (_marker(collector) or any(mark.name == "ranks" for mark in own)):
        pytest.mark.usefixtures("collshim_world")(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on ranks once for each number of ranks."""
    marker = _marker(metafunc.definition)
    if marker is not None:
        from collshim.testing.plugin import parametrize

        parametrize(metafunc, marker)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave the fixtures that differ between ranks to the ranks."""
    if isinstance(item, pytest.Function) and _marker(item) is not None:
        from collshim.testing.plugin import leave_to_ranks

        leave_to_ranks(item)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Prepare the call of a test on ranks."""
    marker = _marker(item)
    if marker is None or not isinstance(item, pytest.Function):
        yield
        return
    from collshim.testing.plugin import called

    with called(item, marker):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_exception_interact(node: Any, call: pytest.CallInfo[None]) -> Generator[None, None, None]:
    """Let --pdb open on the process of the rank that failed."""
    if not isinstance(node, pytest.Function) or _marker(node) is None:
        yield
        return
    from collshim.testing.plugin import interacting

    with interacting(node, call):
        yield


def pytest_leave_pdb() -> None:
    """Let the next rank have a debugger."""
    debugging = sys.modules.get("collshim.testing.debugging")
    if debugging is not None:
        debugging.TURN.leave()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test on its ranks."""
    __tracebackhide__ = True
    if _marker(pyfuncitem) is None:
        return None
    from collshim.testing.plugin import run

    run(pyfuncitem)
    return True


@pytest.hookimpl(hookwrapper=True)  # the form that pytest before 7.4 also knows
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Show how a test on ranks ended on each of them."""
    if _marker(item) is None:
        yield
        return
    from collshim.testing.plugin import describe, keep_output

    if call.when == "call":
        keep_output(item)
    outcome = yield
    describe(item, call, outcome.get_result())


@pytest.fixture(scope="module")
def collshim_world() -> Any:
    """Return the ranks of tests whose marker names none, 2 threads; a project may override it, with parameters too."""
    from collshim.testing import Ranks

    return Ranks()


@pytest.fixture
def world_size(collshim_world: Any) -> int:
    """Return the number of ranks."""
    size: int = collshim_world.size
    return size


@pytest.fixture
def rank() -> int:
    """Return this rank's number, from 0. A fixture that requests it is set up by each rank for itself."""
    _outside("rank")


@pytest.fixture
def comm() -> Any:
    """Return this rank's ``collshim.Communicator`` of all ranks."""
    _outside("comm")


@pytest.fixture
def rank_seed() -> int:
    """Return a seed that differs between ranks, and is the same in each run of the test."""
    _outside("rank_seed")


@pytest.fixture
def shared_seed(request: pytest.FixtureRequest) -> int:
    """Return a seed that is the same on all ranks, and in each run of the test."""
    return zlib.crc32(request.node.nodeid.encode()) & 0x7FFFFFFF


def _outside(name: str) -> NoReturn:
    """Fail a test that requests a rank's fixture, but does not run on ranks."""
    pytest.fail(f"the fixture {name!r} is for tests with @pytest.mark.ranks, and for their fixtures", pytrace=False)
