"""Two threads of one rank: with a group each all is right; on one group no number is wrong and nobody hangs."""

from __future__ import annotations

import pytest

from collshim.launching.kinds import RANK_KINDS
from tests.engine.worlds import Outcome, on_ranks
from tests.robustness.scenarios import two_threads

TRANSPORTS = RANK_KINDS
SIZE = 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_threads_with_a_group_each_are_right(transport: str) -> None:
    assert on_ranks(two_threads.a_group_each, SIZE, transport, within=100) == [[Outcome({"right"})] * 2] * SIZE


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_threads_with_calls_in_flight_are_right(transport: str) -> None:
    found = on_ranks(two_threads.a_group_each_in_flight, SIZE, transport, wait=30.0, within=120)
    assert found == [[Outcome({"right"})] * 4] * SIZE


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_threads_sharing_a_group_are_right_or_fail(transport: str) -> None:
    found = on_ranks(two_threads.one_group, SIZE, transport, wait=3.0, within=100)
    assert all(outcome.value <= {"right", "CommunicationError"} for rank in found for outcome in rank), found


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_work_can_be_waited_for_in_another_thread(transport: str) -> None:
    found = on_ranks(two_threads.handed_over, SIZE, transport, wait=20.0, within=100)
    assert found == [[[3.0] * 3, [3.0] * 2]] * SIZE
