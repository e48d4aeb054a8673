"""Calls of data that does not fit in a slot are right, repeated, late or interrupted, and fail as small ones do."""

from __future__ import annotations

from functools import cache

import pytest

from tests.engine.scenarios import larger
from tests.engine.scenarios.larger import CALLS, ROUNDS, SIZE
from tests.engine.worlds import on_ranks

pytestmark = pytest.mark.processes

KINDS = ("processes", "unchecked")


@cache
def _repeated(kind: str) -> list[dict[str, list[bool]]]:
    return on_ranks(larger.repeated, SIZE, kind)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_repeated_call_has_the_bits_of_a_sum_in_rank_order(kind: str, call: str) -> None:
    assert [found[call] for found in _repeated(kind)] == [[True] * ROUNDS] * SIZE


@pytest.mark.parametrize("kind", KINDS)
def test_calls_that_are_posted_together_are_right(kind: str) -> None:
    assert all(all(found) for found in on_ranks(larger.in_turn, SIZE, kind))


@pytest.mark.parametrize("seconds", [0.1, 0.4], ids=["in the first slice", "after it"])
def test_late_rank_gets_the_sum(seconds: float) -> None:
    assert on_ranks(larger.late, SIZE, "processes", seconds) == [["right"] * ROUNDS] * SIZE


def test_interrupted_call_is_completed_for_the_others() -> None:
    found = on_ranks(larger.interrupted, SIZE, "processes")
    assert found[0] == ["right"] * (ROUNDS - 1) + ["from the handler"] + ["right"] * 2
    assert found[1:] == [["right"] * (ROUNDS + 1)] * 2


def test_call_unlike_the_others_is_a_mismatch() -> None:
    raised = [[outcome.raised[:1] for outcome in found] for found in on_ranks(larger.differing, SIZE, "processes")]
    assert raised == [[(), (), ("MismatchError",)]] * SIZE


def test_rank_that_stays_away_is_waited_for_until_the_deadline() -> None:
    found = on_ranks(larger.absent, SIZE, "processes", wait=1.0)
    assert {found[rank][-1].raised[0] for rank in (0, 2)} == {"DeadlineError"}


@pytest.mark.parametrize("waits", [True, False], ids=["in line", "in turn"])
def test_rank_whose_memory_cannot_be_read_ends_the_group(waits: bool) -> None:
    found = on_ranks(larger.unreadable, SIZE, "processes", waits)
    raised = [[outcome.raised[:1] for outcome in rank] for rank in found]
    assert raised == [[()] * (ROUNDS - 1) + [("PeerError",)]] * SIZE
    text = "on rank 0: RuntimeError: the memory of rank 1 cannot be read"
    assert [text in rank[-1].text for rank in found] == [True] * SIZE
