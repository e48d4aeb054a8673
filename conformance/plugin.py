"""The pytest plugin behind the suite's options; ``collshim_pytest`` declares them, and loads this if one is used.

If the suite runs on one module, only the comparison of this module with its framework is collected: the cases of
``collshim conformance``, run by the same code. Laws between adapters, mixed worlds and replays of recordings need
all of collshim's adapters.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collshim import ArgumentError, ArgumentValueError
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.effort import DEFAULT, PROFILE
from collshim.conformance.report.listed import Listed, one_case, read
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.readiness import find_modules_here, require
from collshim.conformance.subject import Subject, module, over
from collshim.frameworks import FRAMEWORKS


class Chosen(NamedTuple):
    """The choices that the options made: the cases, the subject, and the known failures."""

    plan: Plan
    xfails: Listed


CHOSEN = pytest.StashKey[Chosen]()
COUNTS = "collshim cases"
"""The property of a test's report that counts its cases by outcome."""

FOLDER = Path(__file__).resolve().parent
OF_ONE_SUBJECT, OF_ADAPTERS = "test_subject.py", "test_adapters.py"
OF_DRAWN = "test_drawn_cases_agree"


class OnOneDialect:
    """Collects the tests of one dialect: the cases of the command, and drawn cases if wanted."""

    def __init__(self, plan: Plan, *, allow_missing: bool) -> None:
        self._allow_missing = allow_missing
        self._subject = plan.subject
        self._transports = plan.transports
        self._names = {binding.name for binding in plan.bindings()}
        self._draws = PROFILE != DEFAULT and plan.only is None

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore the suite's other files, but no files outside the suite."""
        kept = (OF_ONE_SUBJECT, OF_ADAPTERS) if self._draws else (OF_ONE_SUBJECT,)
        is_own = collection_path.resolve().parent == FOLDER and collection_path.name.startswith("test_")
        return True if is_own and collection_path.name not in kept else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect other dialects and transports that were not chosen; put drawn cases last."""
        others = [item for item in items if not self._is_asked(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = sorted((item for item in items if item not in others), key=_is_drawn)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Exit like a run without tests if all were skipped, so that this does not look like success."""
        reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
        is_run = exitstatus == pytest.ExitCode.OK and not session.config.option.collectonly
        if reporter is None or self._allow_missing or not is_run:
            return
        if not any(reporter.stats.get(kind) for kind in ("passed", "failed", "error")):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
            reporter.section("conformance: no cases were run")

    def pytest_report_header(self) -> str:
        """Return the line that names the subject."""
        return f"collshim.conformance: {self._subject.prefix or 'the real framework'}, {self._subject.framework}"

    def _is_asked(self, item: pytest.Item) -> bool:
        if item.path.resolve().parent != FOLDER or item.path.name == OF_ONE_SUBJECT:
            return True
        params = getattr(getattr(item, "callspec", None), "params", {})
        binding, transport = params.get("binding"), params.get("transport")
        is_of_subject = isinstance(binding, Binding) and self._subject.speaks(binding) and binding.name in self._names
        return _is_drawn(item) and is_of_subject and transport in self._transports


def _is_drawn(item: pytest.Item) -> bool:
    return getattr(item, "originalname", "") == OF_DRAWN


def configure(config: pytest.Config, dialect: str) -> None:
    """Set up the suite for a module, or for collshim's own adapter of one dialect, as the options say."""
    chosen: Any = config.option
    if dialect not in FRAMEWORKS:
        raise pytest.UsageError(f"--collshim-framework is {dialect!r}, should be one of {', '.join(FRAMEWORKS)}")
    if chosen.collshim_backend and dialect != "torch":
        raise pytest.UsageError(f"--collshim-backend is only for torch, but --collshim-framework is {dialect!r}")
    subject = replace(_subject(chosen, dialect), seconds=chosen.collshim_timeout)
    if subject.foreign:
        find_modules_here()
    try:
        plan = _plan(chosen, subject)
        require(subject, plan.bindings(), allow_missing=chosen.collshim_allow_missing)
        config.stash[CHOSEN] = Chosen(plan, read(_path(chosen.collshim_xfails_file)))
    except ArgumentError as error:
        raise pytest.UsageError(str(error)) from error
    rules = OnOneDialect(plan, allow_missing=chosen.collshim_allow_missing)
    config.pluginmanager.register(rules, "collshim-one-dialect")


def _plan(chosen: Any, subject: Subject) -> Plan:
    """Return the plan that the command would make from these options."""
    unknown = [name for name in chosen.collshim_collective or () if name not in COLLECTIVES]
    if unknown:
        names = ", ".join(COLLECTIVES)
        raise ArgumentValueError(f"--collshim-collective is {' '.join(unknown)}, should be of {names}")
    return Plan(
        subject,
        chosen.collshim_transport or (["processes"] if subject.foreign else list(subject.transports)),
        [subject.framework],
        chosen.collshim_collective or (),
        chosen.collshim_size or (),
        chosen.collshim_kinds or (),
        None if chosen.collshim_case is None else one_case(chosen.collshim_case, "--collshim-case"),
        read(_path(chosen.collshim_skips_file)),
    )


def _subject(chosen: Any, dialect: str) -> Subject:
    if chosen.collshim_backend:
        return over(chosen.collshim_backend, chosen.collshim_adapter, chosen.collshim_import)
    return module(chosen.collshim_adapter, dialect) if chosen.collshim_adapter else Subject(dialect)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
