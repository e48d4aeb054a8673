"""Repetition leaves nothing behind: no memory, no file descriptor, no thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from collshim.conformance.effort import THOROUGH
from collshim.launching.kinds import RANK_KINDS
from tests.engine.worlds import on_ranks
from tests.robustness.scenarios.resources import many_groups, many_reductions

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system has no /proc/self/status")
TRANSPORTS = RANK_KINDS
GROUPS = {"threads": 1000, "processes": 1000 if THOROUGH else 100}
REDUCTIONS, MEGABYTES = (1000, 64) if THOROUGH else (50, 40)  # above 32 MB malloc returns every block at once
LIMIT = 500.0 if THOROUGH else 100.0


@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize("transport", ["processes", pytest.param("threads", marks=pytest.mark.slow)])
def test_destroyed_groups_leave_no_descriptor_thread_or_mapping(transport: str) -> None:
    for before, after in on_ranks(many_groups, 3, transport, GROUPS[transport], wait=60.0, within=LIMIT):
        assert after.descriptors <= before.descriptors
        assert after.threads <= before.threads
        assert after.mappings <= before.mappings
        assert after.mappings > 0 or transport == "threads"


@pytest.mark.slow
@pytest.mark.timeout(LIMIT + 20)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_repeated_all_reduces_do_not_grow_memory(transport: str) -> None:
    for tenth, last in on_ranks(many_reductions, 2, transport, REDUCTIONS, MEGABYTES, wait=60.0, within=LIMIT):
        assert last <= 1.05 * tenth
