"""What pytest does with the suite's options; ``collshim_pytest`` has the options, and asks for this when one is used.

Run on a module, only what compares one adapter with its framework is collected: laws between adapters, mixed worlds
and the replay of recordings are about all of collshim's adapters at once.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collshim import ArgumentError, ArgumentValueError
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.report.listed import one_case, read
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.readiness import find_modules_here, require
from collshim.conformance.rules import Rules
from collshim.conformance.subject import Subject, module, over
from collshim.frameworks import FRAMEWORKS

RULES = pytest.StashKey[Rules]()
FOLDER = Path(__file__).resolve().parent
OF_ONE_ADAPTER = "test_adapters.py"
OF_CASES = "test_corner_cases_agree"


class OnOneDialect:
    """Collects the part of the suite that is about one dialect."""

    def __init__(self, plan: Plan) -> None:
        self._subject = plan.subject
        self._transports = plan.transports
        self._names = {binding.name for binding in plan.bindings()}
        self._is_one_case = plan.only is not None

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out the suite's other files, and no others."""
        is_own = collection_path.resolve().parent == FOLDER and collection_path.name.startswith("test_")
        return True if is_own and collection_path.name != OF_ONE_ADAPTER else None

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the other dialects, and the transports that were not asked for."""
        others = [item for item in items if not self._is_asked(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]

    def pytest_report_header(self) -> str:
        """Say what is tested."""
        return f"collshim.conformance: {self._subject.prefix or 'the real framework'}, {self._subject.framework}"

    def _is_asked(self, item: pytest.Item) -> bool:
        params = getattr(getattr(item, "callspec", None), "params", {})
        binding = params.get("binding")
        if isinstance(binding, Binding) and (not self._subject.speaks(binding) or binding.name not in self._names):
            return False
        if self._is_one_case and isinstance(binding, Binding) and getattr(item, "originalname", "") != OF_CASES:
            return False
        return params.get("transport", self._transports[0]) in self._transports


def configure(config: pytest.Config, dialect: str) -> None:
    """Let the suite be run on a module, or on collshim's own adapter of one dialect; as the options say."""
    chosen: Any = config.option
    if dialect not in FRAMEWORKS:
        raise pytest.UsageError(f"--collshim-framework is {dialect!r}, should be one of {', '.join(FRAMEWORKS)}")
    if chosen.collshim_backend and dialect != "torch":
        raise pytest.UsageError(f"--collshim-backend is torch's, and --collshim-framework is {dialect!r}")
    subject = replace(_subject(chosen, dialect), seconds=chosen.collshim_timeout)
    if subject.foreign:
        find_modules_here()
    try:
        plan = _plan(chosen, subject)
        require(subject, plan.bindings(), allow_missing=chosen.collshim_allow_missing)
        xfails = read(_path(chosen.collshim_xfails_file))
        config.stash[RULES] = Rules(plan, xfails, is_chosen=True)
    except ArgumentError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(OnOneDialect(plan), "collshim-one-dialect")


def _plan(chosen: Any, subject: Subject) -> Plan:
    """As the command makes it of its options."""
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
