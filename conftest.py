"""The hooks of every test run: tiers by what a test starts, the order for workers, and a SIGINT that reaches ranks."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import Counter, defaultdict
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent

pytest_plugins = ["tests.time_outs"]

TIERS = ("processes", "threads", "unranked")
"""The markers for what a test starts: processes, ranks that are threads, or no ranks."""

FOLDERS = {
    "conformance": "threads",
    "conformance/test_record.py": "processes",
    "conformance/test_replay_sees.py": "unranked",
    "tests/adapters": "threads",
    "tests/benchmarks": "processes",
    "tests/cuda_model": "threads",
    "tests/docs": "threads",
    "tests/gpu": "processes",
    "tests/robustness": "processes",
}
"""The tier of a test without a marker; elsewhere it is "unranked".

The suite's files carry no markers: it is installed, too, and those who run it there have not registered them.
"""

RANKS = {"threads": "threads", "processes": "processes", "unchecked": "processes"}
"""The tier by a test's parameter, which goes before its marker, unless that is "processes"."""

MARKED = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(?:processes|threads)\b", re.MULTILINE)
"""A file whose tests all start ranks: its tier is the first marker of the list."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and let SIGINT interrupt: a shell's background job ignores it, and so would the ranks."""
    config.addinivalue_line("markers", "processes: starts processes")
    config.addinivalue_line("markers", "threads: starts ranks that are threads, and no processes")
    config.addinivalue_line("markers", "unranked: starts no ranks")
    config.addinivalue_line("markers", "slow: run by `make thorough` only")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file with ranks if only tests without ranks are selected."""
    if config.getoption("markexpr") not in ("unranked", "unranked and not slow") or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    has_ranks = MARKED.search(text) is not None or _default(collection_path) != "unranked"
    return True if has_ranks and "mark.unranked" not in text else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave each test with one tier; workers begin with the tests that take longest."""
    tiers = [_tier(item) for item in items]
    for node in {node for item in items for node in item.listchain()}:
        node.own_markers[:] = [mark for mark in node.own_markers if mark.name not in TIERS]
    for item, tier in zip(items, tiers, strict=True):
        item.add_marker(tier)
    if hasattr(config, "workerinput"):
        order = dict(zip(items, map(TIERS.index, tiers), strict=True))
        items.sort(key=order.__getitem__)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays anyway: torch's modules, and the tests."""
    gc.collect()
    gc.freeze()


def _tier(item: pytest.Item) -> str:
    """Return what a test starts: by its nearest marker, its parameters, or its folder."""
    marked = next((mark.name for mark in item.iter_markers() if mark.name in TIERS), None)
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    by_parameter = [RANKS[value] for value in parameters.values() if isinstance(value, str) and value in RANKS]
    if by_parameter and marked != "processes":
        return by_parameter[0]
    return marked or _default(item.path)


@cache
def _default(path: Path) -> str:
    """Return the tier of a file, or of the nearest folder that has one."""
    path = path.resolve()
    places = (os.path.relpath(place, ROOT) for place in (path, *path.parents))
    return next((FOLDERS[place] for place in places if place in FOLDERS), "unranked")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums of the counts that tests recorded as properties, which workers send along."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for name, counts in chain.from_iterable(report.user_properties for report in reports):
        sums[name].update(counts)
    for name, counts in sums.items():
        terminalreporter.section(f"{counts.total()} {name}")
        terminalreporter.line(", ".join(f"{kind}: {count}" for kind, count in counts.most_common()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests that share a result to one worker."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False
    scheduler: Any = LoadScopeScheduling(config, log)
    scheduler._split_scope = _scope
    return scheduler


def _scope(nodeid: str) -> str:
    """Return the file, or in the conformance suite the function and the kind of ranks."""
    file, _, test = nodeid.partition("::")
    if "conformance/" not in file:
        return file
    ranks = re.search(r"\b(threads|processes|unchecked)\b", test)
    return f"{file}::{test.partition('[')[0]}, {ranks[0] if ranks else ''}"
