"""A missing rank is named to every waiting rank, within the deadline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest

import collshim
from tests.engine.scenarios.deadlines import ABSENT, OTHERS, SHORT, SIZE, one_after_the_other
from tests.engine.worlds import TRANSPORTS, Outcome, on_ranks


@cache
def _started() -> dict[tuple[str, str], Future[list[Any]]]:
    """Start all worlds; they mostly wait, so six at a time cost little more than one."""
    with ThreadPoolExecutor(6) as pool:
        return {
            (transport, name): pool.submit(_run, scenario, transport)
            for transport in TRANSPORTS
            for name, scenario in (ABSENT | OTHERS).items()
        }


def _run(scenario: Callable[[], Any], transport: str) -> list[Any]:
    """Run a scenario; on threads the clock jumps, so that nobody waits for the deadline."""
    with collshim.options(clock="jumping" if transport == "threads" else "system"):
        return on_ranks(scenario, SIZE, transport, wait=SHORT, within=30)


def _found(transport: str, name: str) -> list[Any]:
    return _started()[transport, name].result()


def _is_told(outcome: Outcome) -> bool:
    return bool({"DeadlineError", "PeerError"} & set(outcome.raised))


@pytest.mark.parametrize("name", ABSENT)
def test_every_other_rank_learns(transport: str, name: str) -> None:
    found = _found(transport, name)
    assert [_is_told(first) for first, _ in found] == [True, True, False], found


@pytest.mark.parametrize("name", ABSENT)
def test_only_the_missing_rank_is_named(transport: str, name: str) -> None:
    texts = [first.text for first, _ in _found(transport, name)[:2]]
    assert all("1 of 3 ranks did not arrive: rank 2 " in text for text in texts), texts


@pytest.mark.parametrize("name", ABSENT)
def test_broken_group_explains_why(transport: str, name: str) -> None:
    again = [second for _, second in _found(transport, name)[:2]]
    assert [outcome.raised[0] for outcome in again] == ["BrokenCommunicatorError"] * 2
    assert all("ended by an earlier failure" in outcome.text and "rank 2" in outcome.text for outcome in again), again


@pytest.mark.parametrize("name", ABSENT)
def test_late_rank_learns_too(transport: str, name: str) -> None:
    late = _found(transport, name)[2][1]
    assert "CommunicationError" in late.raised, late


# With the check off a recv waits in gloo itself, and cannot report its location from there.
def test_location_of_the_missing_rank_is_reported(checked: str) -> None:
    found = _found(checked, "elsewhere")
    assert [_is_told(outcome) for outcome in found[:2]] == [True, True], found
    assert all("rank 2 waits in recv(shape (5,), float32, from 0)" in found[rank].text for rank in (0, 1)), found


def test_fatal_wait_for_a_message_names_its_rank(transport: str) -> None:
    found = _found(transport, "elsewhere_and_first_to_give_up")
    assert all("recv(shape (5,), float32, from 0)" in outcome.text for outcome in found), found
    assert all("on rank 2" in outcome.text and "rank 0 waits in all_reduce" in outcome.text for outcome in found), found


def test_wait_in_another_group_names_its_call(transport: str) -> None:
    found = _found(transport, "in_another_group")
    assert all("rank 2 waits in all_gather(shape (7,), float32)" in found[rank].text for rank in (0, 1)), found


def test_unchecked_calls_are_shown_at_the_deadline() -> None:
    found = _found("unchecked gloo", "a_barrier_beside_a_discovery")
    assert [_is_told(outcome) for outcome in found] == [True, True, True], found
    assert all("rank 0 arrived with barrier()" in outcome.text for outcome in found), found
    assert all("rank 2 arrived with all_gather(shape (3,), float32)" in outcome.text for outcome in found), found


def test_missing_message_names_its_sender(transport: str) -> None:
    found = _found(transport, "no_message")[1]
    assert _is_told(found)
    assert "rank 0" in found.text or "from 0" in found.text


def test_missing_message_from_any_rank_is_reported(transport: str) -> None:
    assert _is_told(_found(transport, "no_message_from_anybody")[1])


def test_unreceived_large_message_names_its_receiver(transport: str) -> None:
    found = _found(transport, "nobody_receives")[1]
    assert _is_told(found)
    assert "0" in found.text.split("send(", 1)[1], found


def test_wait_can_have_its_own_deadline(transport: str) -> None:
    found = _found(transport, "a_wait_with_its_own_deadline")
    assert [_is_told(outcome) for outcome in found] == [True, True, False]


def test_failure_ends_only_its_group(transport: str) -> None:
    found = _found(transport, "a_broken_group")
    assert [(_is_told(outcome), total) for outcome, total in found] == [(True, 3), (True, 3), (False, 3)]


def test_member_missing_from_a_new_group_is_named(transport: str) -> None:
    found = _found(transport, "an_incomplete_group")
    assert [_is_told(outcome) for outcome in found[:2]] == [True, True], found
    assert all("rank 2" in outcome.text for outcome in found[:2])


def test_calls_of_dropped_groups_delay_nobody(transport: str) -> None:
    assert _found(transport, "a_dropped_group") == [3] * SIZE


def test_rank_missing_from_a_backward_is_named(transport: str) -> None:
    found = _found(transport, "absent_from_a_backward")
    assert [_is_told(outcome) for outcome in found[:2]] == [True, True], found
    assert all("rank 2 " in outcome.text for outcome in found[:2])


def test_deadlock_is_reported_in_full(transport: str) -> None:
    for found in on_ranks(one_after_the_other, 4, transport)[:3]:
        assert "rank 1 waits in recv(shape (2,), float32, from 2)" in found.text, found
        assert "rank 1 waits for rank 2, which waits in all_reduce(shape (2,), float32, op sum)" in found.text
        assert "rank 2 waits for rank 3, which is in no collective" in found.text
