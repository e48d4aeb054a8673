"""Nobody receives data that arrives after a deadline."""

from __future__ import annotations

import re
from functools import cache

import pytest

from collshim.launching.kinds import RANK_KINDS
from tests.engine.worlds import on_ranks
from tests.robustness.scenarios.waits import LONG, SHORT, Seen, late, late_by_another_clock
from tests.robustness.scripts import ranks

SIZE = 3
TRANSPORTS = RANK_KINDS
LENGTHS = {"small": 4, "large": 100_000}
"""Small data travels with the description of the call, large data after the ranks have agreed."""

EACH = [(transport, name) for transport in TRANSPORTS for name in LENGTHS]
WAITS = """
import numpy as np, collshim
comm = collshim.current().communicator
comm.barrier().wait()
if comm.rank == 1:
    input()
try:
    comm.all_reduce(np.array(1)).wait()
except collshim.DeadlineError as error:
    print(comm.timeout, error, flush=True)
"""


@cache
def _found(transport: str, name: str) -> list[Seen]:
    return on_ranks(late, SIZE, transport, LENGTHS[name], wait=LONG, within=100)


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_second_wait_raises_the_same(transport: str, name: str) -> None:
    for seen in _found(transport, name)[:2]:
        assert (seen.again.raised, seen.again.text) == (seen.first.raised, seen.first.text)


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_late_rank_learns_then_group_is_broken(transport: str, name: str) -> None:
    seen = _found(transport, name)[2]
    assert "CommunicationError" in seen.first.raised
    assert seen.again.raised[0] == "BrokenCommunicatorError"


@pytest.mark.parametrize("behind", [SHORT, -1000.0])
def test_late_rank_learns_whatever_its_clock(behind: float) -> None:
    seen = on_ranks(late_by_another_clock, SIZE, "processes", 4, behind, wait=LONG, within=100)[2]
    assert "CommunicationError" in seen.first.raised, seen
    assert seen.place == [-1.0] * 3


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_output_of_a_failed_call_is_untouched(transport: str, name: str) -> None:
    assert [seen.place for seen in _found(transport, name)] == [[-1.0] * 3] * SIZE


def test_deadline_comes_from_the_environment() -> None:
    with ranks(WAITS, 2, COLLSHIM_TIMEOUT="2.5") as processes:
        told = processes[0].stdout.readline()
    assert told.startswith("2.5 all_reduce("), told
    assert re.search(r"rank 1 is in no collective: it runs \S+:6, its last call was barrier\(\) at \S+:4", told), told
