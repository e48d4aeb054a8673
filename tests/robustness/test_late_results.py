"""After a deadline the group is broken and says why; what arrives late is handed to nobody."""

from __future__ import annotations

from functools import cache

import pytest

from tests.engine.worlds import on_ranks
from tests.robustness.scenarios.late import LONG, Seen, late
from tests.robustness.scripts import Script, ranks, scripts

SIZE = 3
TRANSPORTS = ("threads", "processes")
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
def test_those_who_waited_are_told_who_did_not_come(transport: str, name: str) -> None:
    for seen in _found(transport, name)[:2]:
        assert {"DeadlineError", "PeerError"} & set(seen.first.raised)
        assert "rank 2 " in seen.first.text


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_a_second_wait_raises_the_same_though_everybody_has_called_by_then(transport: str, name: str) -> None:
    for seen in _found(transport, name)[:2]:
        assert (seen.again.raised, seen.again.text) == (seen.first.raised, seen.first.text)


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_the_late_rank_is_told_and_gets_no_result(transport: str, name: str) -> None:
    assert "CommunicationError" in _found(transport, name)[2].first.raised


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_nothing_is_written_where_the_result_was_to_go(transport: str, name: str) -> None:
    assert [seen.place for seen in _found(transport, name)] == [[-1.0] * 3] * SIZE


@pytest.mark.parametrize(("transport", "name"), EACH)
def test_later_calls_say_that_the_group_is_broken_and_why(transport: str, name: str) -> None:
    for seen in _found(transport, name):
        assert seen.afterwards.raised[0] == "BrokenCommunicatorError"
        assert "ended by an earlier failure" in seen.afterwards.text
    assert all("rank 2 " in seen.afterwards.text for seen in _found(transport, name)[:2])


def test_the_deadline_comes_from_the_environment() -> None:
    with ranks(WAITS, 2, COLLSHIM_TIMEOUT="2.5") as processes:
        told = processes[0].stdout.readline()
    assert told.startswith("2.5 all_reduce("), told
    assert "rank 1 is in no collective" in told


def test_a_deadline_in_the_environment_that_is_no_number_is_refused() -> None:
    with scripts([Script("import collshim; collshim.current()", COLLSHIM_TIMEOUT="soon")]) as (script,):
        seen = script.ended()
    assert seen.code == 1
    assert "COLLSHIM_TIMEOUT is 'soon', should be a number of seconds" in seen.errors
