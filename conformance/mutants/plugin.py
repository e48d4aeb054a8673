"""The plugin in a mutant's pytest: selects the tests to run, and reports which of them noticed the mutant, and how.

The tests of the collectives that must fail come first, after one test of a different collective. The run ends as soon
as one test has failed and another has passed. ``--mutant`` names a file with the request, written by ``runner``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_CORNERS = "test_corner_cases_agree"
_REFUSED = "test_refused_cases_agree"
_DRAWN = "test_drawn_cases_agree"
_ORDER = (
    (_CORNERS, "threads"),
    (_REFUSED, "threads"),
    (_CORNERS, "processes"),
    ("test_repeated_calls_agree", "processes"),
    ("test_repeated_calls_agree", "unchecked"),
    ("test_the_adapter_answers_as_recorded", ""),
    (_REFUSED, "processes"),
    (_DRAWN, "threads"),
    (_DRAWN, "processes"),
)
"""The order of the tests: those that cover the most in the least time come first."""

_SAYS = r": .+? is .+?, should be [^\n]*"  # an exception's text may have several lines
_COMPARED = re.compile(r"^[ \t]*(?P<collective>\w+) through \S+" + _SAYS, re.DOTALL | re.MULTILINE)
_REPLAYED = re.compile(r"^[ \t]*(?:[\w.]+\.)?(?P<function>\w+)/[^\n]*@\S+" + _SAYS, re.DOTALL | re.MULTILINE)


@dataclass
class Seen:
    """The results of a mutant's run; ``test`` and ``message`` are those of the comparison that failed."""

    imported: bool = False
    passed: int = 0
    test: str = ""
    message: str = ""
    failed: dict[str, str] = field(default_factory=dict[str, str])


class MutantPlugin:
    """The plugin of one run."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._collectives: list[str] = asked["collectives"]
        self._framework: str = asked["framework"]
        self._transport: str = asked["transport"]
        self._controls: bool = asked["controls"]
        self._report = Path(asked["report"])
        self._needed: set[pytest.Item] = set()
        self._found = ""
        self.seen = Seen()
        if asked["module"]:
            import_module(asked["module"])
        self.seen.imported = True
        self._write()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests that may notice the mutant, with one other before them and the rest after them."""
        if self._controls:
            return
        relevant = sorted(filter(self._may_see, items), key=_haste)
        self._needed = set(relevant)
        others = [item for item in items if item not in self._needed and _name(item) == _CORNERS]
        others.sort(key=lambda item: (_framework(item) != self._framework, _haste(item)))
        items[:] = [*others[:1], *relevant, *others[1:]]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """End the run when the outcome is decided."""
        if self._controls or not self.seen.passed:
            if self._found and self._found in _collectives(item):
                pytest.skip("its collective has already failed")
        elif self._found or item not in self._needed:
            over = "the mutant was caught" if self._found else "every test that may notice the mutant has run"
            item.session.shouldstop = over
            pytest.skip(over)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report the result of a test."""
        report = yield
        if report.passed and report.when == "call":
            self.seen.passed += 1
        elif report.failed and call.excinfo is not None:
            self._record_failure(item, call.excinfo.value)
        self._write()
        return report

    def _record_failure(self, item: pytest.Item, error: BaseException) -> None:
        texts = [str(one) for one in _flatten(error)]
        self.seen.failed[item.nodeid] = f"{type(error).__name__}: {texts[0][:300] if texts else error}"
        for named, sentence in (found for text in texts for found in self._sentences(text)):
            if not self._found:
                self._found, self.seen.test, self.seen.message = named, item.nodeid, sentence

    def _sentences(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the sentences in which comparisons name a collective that should fail, each with that collective."""
        for found in _COMPARED.finditer(text):
            if self._asks(found["collective"]):
                yield found["collective"], found[0].strip()
        for found in _REPLAYED.finditer(text):
            named = [one for one in _collectives_of(found["function"]) if self._asks(one)]
            if named:
                yield named[0], found[0].strip()

    def _asks(self, collective: str) -> bool:
        return not self._collectives or collective in self._collectives

    def _may_see(self, item: pytest.Item) -> bool:
        if self._transport not in ("", *_transports(item)) or (self._framework and _framework(item) != self._framework):
            return False
        return any(map(self._asks, _collectives(item)))

    def _write(self) -> None:
        self._report.write_text(json.dumps(asdict(self.seen)), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option for the file with the request."""
    parser.addoption("--mutant", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Import the changed module, and register the plugin."""
    asked = json.loads(Path(str(config.getoption("--mutant"))).read_text(encoding="utf-8"))
    config.pluginmanager.register(MutantPlugin(asked), "mutant-plugin")


def _parameters(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params


def _name(item: pytest.Item) -> str:
    return getattr(item, "originalname", item.name)


def _haste(item: pytest.Item) -> int:
    kind = (_name(item), _parameters(item).get("transport", ""))
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def _framework(item: pytest.Item) -> str:
    parameters = _parameters(item)
    binding = parameters.get("binding")
    found: str = parameters.get("framework", "") if binding is None else binding.framework.name
    return found


def _transports(item: pytest.Item) -> tuple[str, ...]:
    """Return a test's transports; unchecked ranks are processes too."""
    transport = _parameters(item).get("transport", "threads")
    return ("unchecked", "processes") if transport == "unchecked" else (transport,)


def _collectives(item: pytest.Item) -> set[str]:
    """Return the collectives that a test asks; an empty set if it asks all or none."""
    parameters = _parameters(item)
    if "binding" in parameters:
        return {parameters["binding"].collective}
    if "several" in parameters:
        return set(_collectives_of(parameters["several"][0].asked.id.partition("/")[0].rpartition(".")[2]))
    if "law" in parameters:
        return {*parameters["first"], *parameters["second"]}
    return {parameters["collective"]} if "collective" in parameters else set()


def _collectives_of(function: str) -> list[str]:
    """Return the collectives that a function of this name computes."""
    from collshim.conformance.bindings import bindings  # imported late: a mutant may be in one of its imports

    return [one.collective for one in bindings() if one.path.rpartition(".")[2] == function]


def _flatten(error: BaseException) -> list[BaseException]:
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return [found for one in inner for found in _flatten(one)] if inner else [error]
