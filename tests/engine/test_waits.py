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
from tests.engine.worlds import CHECKED, Outcome, on_ranks, outcomes, values_of

_ALL_TOGETHER = TOGETHER | CHECKED_TOGETHER


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    together = TOGETHER if transport not in CHECKED else _ALL_TOGETHER
    scenarios: dict[str, Any] = {name: scenario for name, (scenario, _) in together.items()}
    scenarios |= {f"closed, {name}": partial(closed, name) for name in CLOSED} | {
        "barrier": closed_barrier,
        "undivided": undivided,
    }
    return outcomes(scenarios | {name: partial(bad_timeout, name) for name in TIMEOUTS}, SIZE, transport)


@pytest.mark.parametrize("name", TOGETHER)
def test_two_threads_get_the_same_result(transport: str, name: str) -> None:
    assert values_of(_found(transport), name) == TOGETHER[name][1]


@pytest.mark.parametrize("name", CHECKED_TOGETHER)
def test_two_threads_learn_of_a_failure(checked: str, name: str) -> None:
    assert values_of(_found(checked), name) == CHECKED_TOGETHER[name][1]


@pytest.mark.parametrize("name", CLOSED)
def test_wait_after_close_returns_or_raises(transport: str, name: str) -> None:
    assert set(values_of(_found(transport), f"closed, {name}")) <= {3.0, "BrokenCommunicatorError"}


@pytest.mark.parametrize("name", TIMEOUTS)
def test_invalid_timeout_keeps_the_work_usable(transport: str, name: str) -> None:
    value, kind = TIMEOUTS[name]
    text = f"wait: timeout is {value!r}, should be a number of seconds, 0 or more"
    assert values_of(_found(transport), name) == [((kind,), text, [2.0, 2.0])] * SIZE


@pytest.mark.processes
def test_closed_process_barrier_does_not_succeed() -> None:
    assert values_of(_found("processes"), "barrier") == [("BrokenCommunicatorError",)] * SIZE


def test_polling_for_a_returned_peer_fails(transport: str) -> None:
    assert on_ranks(without_its_peer, SIZE, transport)[0] == (True, "PeerError")


def test_polling_past_the_deadline_fails(transport: str) -> None:
    assert on_ranks(past_the_deadline, SIZE, transport)[0] == (True, "DeadlineError")


def test_failing_last_step_is_a_communication_error(transport: str) -> None:
    where = r" \(on rank [0-9], which computed for all\)" if transport == "threads" else ""
    told = re.compile(f"all_reduce: NotImplementedError: no division{where}")
    for failures, total in values_of(_found(transport), "undivided"):
        assert total == 2.0
        assert all(kind == "CommunicationError" and told.fullmatch(text) for kind, text in failures), failures
