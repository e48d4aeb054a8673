"""Waits by two threads at once, after a close, and polls that would never end."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any

import pytest

from tests.engine.scenarios.waits import (
    CHECKED_TOGETHER,
    CLOSED,
    SIZE,
    TIMEOUTS,
    TOGETHER,
    bad_timeout,
    closed,
    closed_barrier,
    past_the_deadline,
    undivided,
    without_its_peer,
)
from tests.engine.worlds import Outcome, on_ranks, outcomes, values_of

_ALL_TOGETHER = TOGETHER | CHECKED_TOGETHER


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    together = TOGETHER if transport == "unchecked" else _ALL_TOGETHER
    scenarios: dict[str, Any] = {name: scenario for name, (scenario, _) in together.items()}
    scenarios |= {f"closed, {name}": partial(closed, name) for name in CLOSED} | {
        "barrier": closed_barrier,
        "undivided": undivided,
    }
    return outcomes(scenarios | {name: partial(bad_timeout, name) for name in TIMEOUTS}, SIZE, transport)


@pytest.mark.parametrize("name", TOGETHER)
def test_two_threads_that_wait_for_one_work_get_the_same_result(transport: str, name: str) -> None:
    assert values_of(_found(transport), name) == TOGETHER[name][1]


@pytest.mark.parametrize("name", CHECKED_TOGETHER)
def test_two_threads_that_wait_for_one_work_are_both_told_of_a_failure(checked: str, name: str) -> None:
    assert values_of(_found(checked), name) == CHECKED_TOGETHER[name][1]


@pytest.mark.parametrize("name", CLOSED)
def test_a_wait_after_the_close_gives_the_result_or_an_error(transport: str, name: str) -> None:
    assert set(values_of(_found(transport), f"closed, {name}")) <= {3.0, "BrokenCommunicatorError"}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_a_timeout_that_is_none_is_refused_and_the_work_stays_good(transport: str, name: str) -> None:
    value, kind = TIMEOUTS[name]
    text = f"wait: timeout is {value!r}, should be a number of seconds, 0 or more"
    assert values_of(_found(transport), name) == [((kind,), text, [2.0, 2.0])] * SIZE


@pytest.mark.processes
def test_a_barrier_between_processes_that_a_close_cut_off_is_no_success() -> None:
    assert values_of(_found("processes"), "barrier") == [("BrokenCommunicatorError",)] * SIZE


def test_who_polls_for_a_peer_that_has_returned_is_told(transport: str) -> None:
    assert on_ranks(without_its_peer, SIZE, transport)[0] == (True, "PeerError")


def test_who_polls_past_the_deadline_is_told(transport: str) -> None:
    assert on_ranks(past_the_deadline, SIZE, transport)[0] == (True, "DeadlineError")


def test_a_last_step_that_fails_is_a_communication_error_and_the_next_call_is_right(transport: str) -> None:
    where = r" \(on rank [0-9], which computed for all\)" if transport == "threads" else ""
    told = re.compile(f"all_reduce: NotImplementedError: no division{where}")
    for failures, total in values_of(_found(transport), "undivided"):
        assert total == 2.0
        assert all(kind == "CommunicationError" and told.fullmatch(text) for kind, text in failures), failures
