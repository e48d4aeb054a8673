"""The hooks of pytest for tests on ranks; ``collshim_pytest`` calls them for tests with the marker ``ranks``."""

from __future__ import annotations

import inspect
import os
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from collshim.calls.frames import without_library
from collshim.errors import ArgumentError, RankError
from collshim.testing import threads
from collshim.testing.body import OWN, Body, RankFixture
from collshim.testing.outcomes import SKIPPED, XFAILED, Outcome, cause, table, unlike
from collshim.testing.ranks import Ranks, from_marker

WORLD = "collshim_world"
OUTCOMES = pytest.StashKey[list[Outcome]]()
_POOL = pytest.StashKey[Any]()
_CAPTURES = ("capsys", "capfd", "capsysbinary", "capfdbinary")


class _OfEachRank:
    """Stands for a value that differs between ranks, also in the examples that Hypothesis prints."""

    def __repr__(self) -> str:
        return "<each rank's own>"


_LEFT_TO_RANKS = _OfEachRank()


def parametrize(metafunc: pytest.Metafunc, marker: pytest.Mark) -> None:
    """Let a test run once for each number of ranks that its marker names."""
    try:
        asked = from_marker(marker.args, dict(marker.kwargs))
    except ArgumentError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from error
    if asked:
        metafunc.parametrize(WORLD, asked, ids=[str(ranks) for ranks in asked])


def leave_to_ranks(item: pytest.Function) -> None:
    """Keep pytest from making the fixtures that every rank makes for itself."""
    for name in _of_ranks(item):
        item.funcargs[name] = _LEFT_TO_RANKS
    if hasattr(item.obj, "hypothesis"):
        _allow_fixtures(item.obj)


def _allow_fixtures(test: Any) -> None:
    """Keep Hypothesis from warning that fixtures are not made for each example: those of a rank are."""
    from hypothesis import HealthCheck, settings

    function = getattr(test, "__func__", test)
    own: Any = getattr(function, "_hypothesis_internal_use_settings", settings.default)
    wanted = {HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, *own.suppress_health_check}
    function._hypothesis_internal_use_settings = settings(own, suppress_health_check=wanted)


def _of_ranks(item: pytest.Function) -> list[str]:
    """Return the fixtures that differ between ranks, in the order in which they are made."""
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
    """Return whether a fixture is the plugin's, not one of that name with which a project overrides it."""
    return name in OWN and definition.func.__module__ == "collshim_pytest"


def _ordered(names: list[str], definitions: Any) -> list[str]:
    """Sort fixtures so that each follows those that it asks for."""
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
    """Run a test on its ranks; raise what the rank raised that is the cause of a failure."""
    ranks: Any = item.funcargs[WORLD]
    if not isinstance(ranks, Ranks):
        raise pytest.UsageError(f"{WORLD} is {ranks!r}, should be a collshim.testing.Ranks")
    body = _body(item, ranks)
    handle = getattr(item.obj, "hypothesis", None)
    if handle is None:
        _run(item, body)
        return
    kept = handle.inner_test
    handle.inner_test = _drawing(item, body, kept)
    try:
        item.obj(**{name: body.shared.get(name, _LEFT_TO_RANKS) for name in body.argnames})
    finally:
        handle.inner_test = kept


def _drawing(item: pytest.Function, body: Body, inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test for Hypothesis, which draws once for all ranks."""
    names = tuple(inspect.signature(inner).parameters)

    def drawn(*args: Any, **given: Any) -> None:
        values = given | dict(zip(names, args, strict=False))
        body.drawn = {name: value for name, value in values.items() if name not in body.argnames and name != "self"}
        _run(item, body)

    return drawn


def _body(item: pytest.Function, ranks: Ranks) -> Body:
    left = _of_ranks(item)
    seed = zlib.crc32(item.nodeid.encode()) & 0x7FFFFFFF
    shared = {name: value for name, value in item.funcargs.items() if value is not _LEFT_TO_RANKS}
    handle = getattr(item.obj, "hypothesis", None)
    function = handle.inner_test if handle is not None else item.obj
    function = getattr(function, "__func__", function)
    definitions = item._fixtureinfo.name2fixturedefs
    fixtures = [_fixture(item, name) for name in left if not _is_own(name, definitions[name][-1])]
    return Body(ranks, function, tuple(item._fixtureinfo.argnames), shared, seed, fixtures, item.instance)


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


def _run(item: pytest.Function, body: Body) -> None:
    __tracebackhide__ = True
    if body.ranks.processes:
        outcomes = _on_processes(item.config, body)
    else:
        splits = not any(name in item.fixturenames for name in _CAPTURES)
        outcomes = threads.run(body, body.ranks, splits_output=splits)
    item.stash[OUTCOMES] = outcomes
    found = cause(outcomes)
    if found is None:
        _end_early(outcomes)
        return
    error = outcomes[found].error
    if error is None:
        pytest.fail(f"rank {found} of {len(outcomes)} {outcomes[found].kind}: {outcomes[found].text}", pytrace=False)
    raise without_library(error)


def _on_processes(config: pytest.Config, body: Body) -> list[Outcome]:
    outcomes: list[Outcome] = []
    why = ""
    try:
        outcomes = pool(config).run(body, body.ranks)
    except RankError as failure:
        why = f"the ranks' processes did not start: {failure}"
    if why:  # not in the handler, so that the report shows no exception but this one
        pytest.fail(why, pytrace=False)
    return outcomes


def _end_early(outcomes: list[Outcome]) -> None:
    """Skip the test if all ranks did."""
    text = unlike(outcomes)
    if text:
        pytest.fail(text, pytrace=False)
    first = outcomes[0]
    if first.kind == SKIPPED:
        pytest.skip(first.text.partition(": ")[2])
    if first.kind == XFAILED:
        pytest.xfail(first.text.partition(": ")[2])


def pool(config: pytest.Config) -> Any:
    """Return the session's processes."""
    if _POOL not in config.stash:
        from collshim.testing.processes import Pool
        from collshim.testing.worker import Settings

        arguments = [f"--rootdir={config.rootpath}"]
        if config.inipath is not None:
            arguments += ["-c", str(config.inipath)]
        style = str(config.getoption("tbstyle", "auto"))
        config.stash[_POOL] = found = Pool(Settings(list(sys.path), os.getcwd(), arguments, style))
        config.add_cleanup(found.close)
    return config.stash[_POOL]


def describe(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add to the report of a failed test how it ended on each rank, and what each wrote."""
    outcomes = item.stash.get(OUTCOMES, None)
    if outcomes is None or report.when != "call":
        return
    if report.failed:
        found = cause(outcomes)
        if found is not None and outcomes[found].shown:
            report.longrepr = outcomes[found].shown
        report.sections.append((f"{len(outcomes)} ranks", table(outcomes)))
    report.sections += [
        (f"Captured output of rank {rank}", outcome.output) for rank, outcome in enumerate(outcomes) if outcome.output
    ]
