"""The hooks of pytest for tests on ranks; ``collshim_pytest`` calls them for tests with the marker ``ranks``."""

from __future__ import annotations

import functools
import inspect
import sys
import unittest
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from collshim.calls.frames import without_library
from collshim.errors import ArgumentError, ArgumentTypeError, RankError
from collshim.testing import debugging, threads
from collshim.testing.body import OWN, Body, RankFixture
from collshim.testing.of_pytest import MADE_BY_RANKS
from collshim.testing.outcomes import REJECTED, SKIPPED, Outcome, cause, table, unlike
from collshim.testing.ranks import Ranks, from_marker
from collshim.testing.showing import Style, add_notes
from collshim.testing.surroundings import warn_again

WORLD = "collshim_world"
OUTCOMES = pytest.StashKey[list[Outcome]]()
_POOL = pytest.StashKey[Any]()
_CAPTURES = ("capsys", "capfd", "capsysbinary", "capfdbinary")


class _OfEachRank:
    """Stands for a value that differs between ranks; its ``repr`` appears in the examples that Hypothesis prints."""

    def __repr__(self) -> str:
        return "<each rank's own>"


_LEFT_TO_RANKS = _OfEachRank()


def parametrize(metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
    """Parametrize a test to run once for each number of ranks that its marker names."""
    try:
        chosen = from_marker(marker.args, dict(marker.kwargs))
    except ArgumentError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from error
    if chosen:
        metafunc.parametrize(WORLD, chosen, ids=[str(ranks) for ranks in chosen])


def leave_to_ranks(item: pytest.Function) -> None:
    """Keep pytest from setting up the fixtures that every rank sets up for itself."""
    for name in _rank_fixtures(item):
        item.funcargs[name] = _LEFT_TO_RANKS
    if hasattr(item.obj, "hypothesis"):
        _allow_fixtures(item.obj)


def _allow_fixtures(test: Any) -> None:
    """Keep Hypothesis from warning that fixtures are not set up for each example: the ranks' fixtures are."""
    _suppress(test, "function_scoped_fixture", "differing_executors")


def _suppress(test: Any, *checks: str) -> None:
    from hypothesis import HealthCheck, settings

    function = getattr(test, "__func__", test)
    own: Any = getattr(function, "_hypothesis_internal_use_settings", settings.default)
    wanted = {*(getattr(HealthCheck, name) for name in checks), *own.suppress_health_check}
    function._hypothesis_internal_use_settings = settings(own, suppress_health_check=wanted)


def _rank_fixtures(item: pytest.Function) -> list[str]:
    """Return the fixtures that differ between ranks, in the order in which they are set up."""
    definitions = item._fixtureinfo.name2fixturedefs
    parameters = item.callspec.params if hasattr(item, "callspec") else {}

    def depends(name: str, seen: frozenset[str] = frozenset()) -> bool:
        found = definitions.get(name)
        if not found or name in seen:
            return False
        if _is_own(name, found[-1]):
            return True
        return any(depends(other, seen | {name}) for other in found[-1].argnames)

    names = [name for name in item._fixtureinfo.names_closure if name not in parameters or name in definitions]
    return _ordered([name for name in names if depends(name)], definitions)


def _is_own(name: str, definition: Any) -> bool:
    """Return whether a fixture is the plugin's own, and not a project's override of it."""
    return name in OWN and definition.func.__module__ == "collshim_pytest"


def _is_from_pytest(name: str, definitions: Any) -> bool:
    """Return whether a test's fixture of this name is pytest's own."""
    return bool(definitions) and definitions[-1].func.__module__.startswith("_pytest.")


def _ordered(names: list[str], definitions: Any) -> list[str]:
    """Sort fixtures so that each follows the fixtures that it requests."""
    done: list[str] = []

    def visit(name: str) -> None:
        if name in done or name not in names:
            return
        for other in definitions[name][-1].argnames if name in definitions else ():
            if other != name:
                visit(other)
        done.append(name)

    for name in names:
        visit(name)
    return done


def run(item: pytest.Function) -> None:
    """Run a test on its ranks; if it fails, raise the exception of the rank that caused the failure."""
    ranks: Any = item.funcargs[WORLD]
    if not isinstance(ranks, Ranks):
        raise pytest.UsageError(f"{WORLD} is {ranks!r}, should be a collshim.testing.Ranks")
    body = _body(item, ranks)
    handle = getattr(item.obj, "hypothesis", None)
    if handle is None:
        _run(item, body)
        return
    _suppress(item.obj, "too_slow")  # what passes between the ranks counts as drawing, and takes time on a busy machine
    if ranks.processes:
        _with_pool(item.config, lambda pool: pool.start(ranks.size))  # the first example has a deadline
    kept = handle.inner_test
    handle.inner_test = _drawing(item, body, kept)
    try:
        item.obj(**{name: body.shared.get(name, _LEFT_TO_RANKS) for name in body.argnames})
    finally:
        handle.inner_test = kept


def _drawing(item: pytest.Function, body: Body, inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test for Hypothesis to call; its arguments are drawn once for all ranks."""
    try:
        from collshim.testing.drawing import Source
    except ImportError as error:
        pytest.fail(f"Hypothesis tests on ranks need a newer Hypothesis: {error}", pytrace=False)
    names = tuple(inspect.signature(inner).parameters)

    @functools.wraps(inner)  # Hypothesis prints its name
    def drawn(*args: Any, **given: Any) -> None:
        __tracebackhide__ = True
        values = given | dict(zip(names, args, strict=False))
        body.drawn = {name: value for name, value in values.items() if name not in body.argnames and name != "self"}
        source = Source()
        body.example, body.ask, body.noted = source.example(body.drawn), source.answer, {}
        body.drawn = {name: value for name, value in body.drawn.items() if name not in body.example.data}
        outcomes = _on_ranks(item, body)
        source.take([body.noted[rank] for rank in sorted(body.noted)])
        source.end(outcomes)
        _settle(outcomes)

    return drawn


def _body(item: pytest.Function, ranks: Ranks) -> Body:
    definitions = item._fixtureinfo.name2fixturedefs
    made = [name for name in MADE_BY_RANKS if ranks.processes and _is_from_pytest(name, definitions.get(name))]
    left = [*made, *_rank_fixtures(item)]
    seed = zlib.crc32(item.nodeid.encode()) & 0x7FFFFFFF
    shared = {name: value for name, value in item.funcargs.items() if value is not _LEFT_TO_RANKS and name not in made}
    handle = getattr(item.obj, "hypothesis", None)
    function = handle.inner_test if handle is not None else item.obj
    function = getattr(function, "__func__", function)
    fixtures = [_fixture(item, name) for name in left if not _is_own(name, definitions[name][-1])]
    return Body(ranks, function, tuple(item._fixtureinfo.argnames), shared, seed, fixtures, item.instance, item)


def _fixture(item: pytest.Function, name: str) -> RankFixture:
    definition: Any = item._fixtureinfo.name2fixturedefs[name][-1]
    if definition.scope != "function":
        raise pytest.UsageError(
            f"fixture {name!r} belongs to a rank and has scope {definition.scope!r}, should be 'function'"
        )
    function = definition.func
    is_bound = inspect.ismethod(function)
    is_method = is_bound or next(iter(inspect.signature(function).parameters), "") == "self"
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return RankFixture(
        name,
        function.__func__ if is_bound else function,
        tuple(definition.argnames),
        is_method,
        name in parameters,
        parameters.get(name),
    )


@contextmanager
def called(item: pytest.Function, marker: pytest.Mark) -> Iterator[None]:
    """Make the test run on its ranks inside the block, in which pytest calls it."""
    if isinstance(item.instance, unittest.TestCase):
        _run_method_on_ranks(item, marker)
    with debugging.on_ranks(item.config):
        yield


def _run_method_on_ranks(item: pytest.Function, marker: pytest.Mark) -> None:
    """Run a method of a ``unittest.TestCase`` on ranks; ``setUp`` and ``tearDown`` run once, around them.

    pytest does not call these methods itself.
    """
    chosen = from_marker(marker.args, dict(marker.kwargs)) or [Ranks()]
    wrong = "processes" if chosen[0].processes else f"{len(chosen)} numbers of ranks" if len(chosen) > 1 else ""
    if wrong:
        pytest.fail(
            f"ranks: the methods of a unittest.TestCase run on one number of threads, not on {wrong}: use a class "
            "without a base class",
            pytrace=False,
        )
    method = item.obj

    @functools.wraps(method)
    def on_ranks() -> None:
        __tracebackhide__ = True
        _run(item, Body(chosen[0], method.__func__, (), {}, 0, (), method.__self__, item))

    item.obj = on_ranks


def _run(item: pytest.Function, body: Body) -> None:
    __tracebackhide__ = True
    _settle(_on_ranks(item, body))


def _on_ranks(item: pytest.Function, body: Body) -> list[Outcome]:
    """Run a test on its ranks; return the outcomes."""
    outcomes: list[Outcome]
    if body.ranks.processes:
        outcomes = _with_pool(item.config, lambda pool: pool.run(body, body.ranks))
    else:
        body.traced = debugging.traced if item.config.getoption("trace", False) else None
        captures = _captures(item.config) and not any(name in item.fixturenames for name in _CAPTURES)
        outcomes = threads.run(body, body.ranks, splits_output=captures)
    item.stash[OUTCOMES] = outcomes
    warn_again(each for outcome in outcomes for each in outcome.warned)
    return outcomes


def _settle(outcomes: list[Outcome]) -> None:
    """End the test with the outcome of its ranks: return, skip or fail."""
    __tracebackhide__ = True
    found = cause(outcomes)
    if found is None:
        return
    outcome = outcomes[found]
    text = unlike(outcomes) if outcome.kind == SKIPPED else ""
    if text or outcome.error is None:
        pytest.fail(text or f"rank {found} of {len(outcomes)} {outcome.kind}: {outcome.text}", pytrace=False)
    raise without_library(outcome.error)


def _captures(config: pytest.Config) -> bool:
    """Return whether pytest captures output for the report, as it does without "-s"."""
    return bool(config.getoption("capture", "fd") != "no")


def _with_pool(config: pytest.Config, call: Callable[[Any], Any]) -> Any:
    """Call a function with the session's processes; if they do not start, fail the test."""
    try:
        return call(pool(config))
    except RankError as failure:
        why = f"the ranks' processes did not start: {failure}"
    except ArgumentTypeError as refusal:
        why = str(refusal)
    pytest.fail(why, pytrace=False)  # outside the handler, so that the report shows only this exception


def pool(config: pytest.Config) -> Any:
    """Return the session's pool of processes, created at the first call."""
    if _POOL not in config.stash:
        from collshim.testing.processes import Pool
        from collshim.testing.worker import Settings

        arguments = [f"--rootdir={config.rootpath}"]
        if config.inipath is not None:
            arguments += ["-c", str(config.inipath)]
        folder = str(config.invocation_params.dir)
        debug: Any = (config.getoption(name, None) for name in ("usepdb_cls", "trace", "usepdb"))
        settings = Settings(list(sys.path), folder, arguments, Style.of(config), _captures(config), *debug)
        config.stash[_POOL] = found = Pool(settings, debugging.Terminal(config))
        config.add_cleanup(found.close)
    return config.stash[_POOL]


def keep_output(item: pytest.Item) -> None:
    """Add the output and log of a test's ranks to its reports, in sections that pytest's options control."""
    outcomes: list[Outcome] = item.stash.get(OUTCOMES, [])
    for rank, outcome in enumerate(outcomes):
        for name, text in (("stdout", outcome.output), ("log", outcome.log)):
            if text:
                item.add_report_section(f"of rank {rank}", name, text)


def describe(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Add the outcome on each rank to the report of a failed test."""
    outcomes = item.stash.get(OUTCOMES, None)
    if outcomes is None or report.when != "call":
        return
    found, raised = cause(outcomes), call.excinfo.value if call.excinfo else None
    if found is not None and raised is outcomes[found].error:  # not pytest's or Hypothesis's own error
        _show(outcomes[found], report, raised)
    if report.failed and (found is None or outcomes[found].kind != REJECTED):
        title, text = f"{len(outcomes)} ranks", table(outcomes)
        if hasattr(report.longrepr, "addsection"):
            report.longrepr.addsection(title, text, "-")  # type: ignore[union-attr]  # where --show-capture keeps it
        else:
            report.sections.append((title, text))


def _show(outcome: Outcome, report: pytest.TestReport, raised: BaseException | None) -> None:
    """Show the failure in the report as the rank's process showed it."""
    if report.failed and outcome.shown:
        add_notes(outcome.shown, getattr(raised, "__notes__", []))
        report.longrepr = outcome.shown
    if outcome.place and isinstance(report.longrepr, tuple):
        report.longrepr = (*outcome.place, report.longrepr[2])


@contextmanager
def interacting(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Let pytest's post-mortem inside the block open in the process of the rank that failed, if it was a process."""
    outcomes = item.stash.get(OUTCOMES, None)
    found = None if outcomes is None else cause(outcomes)
    raised = call.excinfo.value if call.excinfo else None
    is_ranks = outcomes is not None and found is not None and (raised is outcomes[found].error or raised is None)
    if found is None or outcomes is None or not (outcomes[found].shown and is_ranks):
        yield
        return
    with debugging.post_mortem_by(lambda: bool(pool(item.config).post_mortem(found))):
        yield
