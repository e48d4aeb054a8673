"""What every run of the tests has: tiers by what a test starts, workers side by side, ranks that Ctrl-C reaches."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections import Counter, defaultdict
from fnmatch import fnmatch
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent

pytest_plugins = ["tests.time_outs"]

TIERS = {
    "processes": """
        conformance/test_record.py
        adapters/*/test_backend.py adapters/*/test_beside_torch.py adapters/*/test_ddp.py adapters/*/test_launcher.py
        adapters/*/test_lifecycle.py adapters/*/test_outside.py adapters/*/test_processes.py
        adapters/megengine/test_training.py benchmarks/* demo/test_demo.py demo/test_training.py docs/test_generated.py
        docs/test_*_examples.py docs/test_adding_a_framework.py docs/test_conformance_page.py
        engine/test_arrays.py::*does_not_end_the_process engine/test_arrays_of_others.py engine/test_launch.py
        engine/test_paths.py engine/test_sessions.py engine/test_stand_in.py engine/test_device_names.py::*told_once*
        engine/test_waits.py::test_a_barrier_between_processes* engine/test_world.py faults/test_faults.py gpu/*
        meta/test_plugin.py meta/test_pool.py mutants/test_runner.py
        packaging/test_names.py packaging/test_pytest.py packaging/test_wheel.py
        report/test_command.py report/test_module.py robustness/* robustness/test_interrupts.py
    """,
    "threads": """
        conformance/* adapters/* docs/*
        engine/test_autograd.py engine/test_communicator.py engine/test_refusals.py engine/test_together.py
        engine/test_work.py meta/test_broken_*.py
    """,
    "unranked": """
        conformance/test_replay_sees.py
        adapters/*/test_cluster_resolver.py adapters/*/test_face.py adapters/*/test_grad_manager.py
        adapters/megengine/test_observed.py
        adapters/*/test_names.py adapters/test_signatures.py
        demo/* engine/* faults/* meta/* mutants/* packaging/* report/*
    """,
}
"""What tests start: processes, ranks that are threads, or neither; the longest pattern holds."""

RANKS = {"threads": "threads", "processes": "processes", "unchecked": "processes"}
"""The same by a test's parameter, which holds unless its file is said to start processes."""

SLOW = """
    adapters/*/test_outside.py::*
    adapters/oneflow/test_launcher.py::test_another_launcher_around_it_does_not_count
    adapters/tensorflow/test_keras.py::test_names_are_kerass_own_under_both_names
    demo/test_demo.py::test_a_result_that_differs_is_named_and_ends_it_with_1
    docs/test_conformance_page.py::*says?[12345]?
    docs/test_*_examples.py::*4?
    docs/test_*_examples.py::*tensor_parallel*
    docs/test_tensorflow_examples.py::*1?
    docs/test_tensorflow_examples.py::*contrastive*
    docs/test_tensorflow_examples.py::*keras*
    engine/test_launch.py::test_a_world_of_processes_in_a_rank?unchecked?
    faults/test_faults.py::test_a_module_and_a_backend_are_scored_as_collshim_is
    meta/test_plugin.py::test_a_backend_that_gives_wrong_numbers_fails
    meta/test_plugin.py::test_a_module_is_asked_and_what_it_lacks_is_counted
    meta/test_plugin.py::test_one_dialect_of_collshims_own_may_be_asked_for
    meta/test_plugin.py::test_what_is_known_to_fail_does_not_fail_the_run
    packaging/test_names.py::*installed?
    report/test_module.py::test_a_backend_that_gives_wrong_numbers_fails
    report/test_module.py::test_a_mistake_is_found*?order-*
    robustness/test_resources.py::*threads?
    robustness/test_soak.py::test_mixed_calls*
    mutants/test_runner.py::test_a_fault_is_caught_by_a_comparison_that_names_its_collective
"""
"""What `make thorough` alone has time for; a test's name, or with its parameters."""


def pytest_configure(config: pytest.Config) -> None:
    """A job in the background of a shell ignores SIGINT, and so would every rank that the tests interrupt."""
    for tier in (*TIERS, "slow"):
        config.addinivalue_line("markers", f"{tier}: given by conftest.py")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file with ranks where tests without any are all that is asked for."""
    asked = config.getoption("markexpr") in ("unranked", "unranked and not slow")
    return True if asked and collection_path.suffix and _place(str(collection_path))[1] != "unranked" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test with its tier; workers begin with the tests that take longest."""
    for item in items:
        item.add_marker(_tier(item))
        names = (_name(item), f"{item.path}::{item.name}")
        if any(fnmatch(name, f"*/{pattern}") for name in names for pattern in SLOW.split()):
            item.add_marker("slow")
    if hasattr(config, "workerinput"):
        order = list(TIERS)
        items.sort(key=lambda item: order.index(_tier(item)))


def pytest_collection_finish() -> None:
    """Collections look no more at what stays: torch's modules, and the tests."""
    gc.collect()
    gc.freeze()


def _tier(item: pytest.Item) -> str:
    pattern, tier = _place(_name(item))
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    by_parameter = [RANKS[value] for value in parameters.values() if isinstance(value, str) and value in RANKS]
    return by_parameter[0] if by_parameter and not (tier == "processes" and ".py" in pattern) else tier


def _name(item: pytest.Item) -> str:
    return f"{item.path}::{getattr(item, 'originalname', item.name)}"


@cache
def _place(name: str) -> tuple[str, str]:
    """The longest pattern that fits, and its tier."""
    places = [(pattern, tier) for tier, patterns in TIERS.items() for pattern in patterns.split()]
    fitting = [place for place in places if fnmatch(os.path.relpath(name, ROOT), f"*/{place[0]}*")]
    return max(fitting, key=lambda place: len(place[0]), default=("", "threads"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The sums of what tests have counted, as properties; workers send those along."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for name, counts in chain.from_iterable(report.user_properties for report in reports):
        sums[name].update(counts)
    for name, counts in sums.items():
        terminalreporter.section(f"{counts.total()} {name}")
        terminalreporter.line(", ".join(f"{kind}: {count}" for kind, count in counts.most_common()))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share what was found out once go to one worker."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False
    scheduler: Any = LoadScopeScheduling(config, log)
    scheduler._split_scope = _scope
    return scheduler


def _scope(nodeid: str) -> str:
    """A file; of the conformance suite a function, and a kind of ranks."""
    file, _, test = nodeid.partition("::")
    if "conformance/" not in file:
        return file
    ranks = re.search(r"\b(threads|processes|unchecked)\b", test)
    return f"{file}::{test.partition('[')[0]}, {ranks[0] if ranks else ''}"
