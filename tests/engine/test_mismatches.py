"""Ranks that meet with mismatched calls all get the same error; the group continues to work."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import pytest

from tests.engine.scenarios.mismatches import MISMATCHES, SIZE, messages, scenario, unseen
from tests.engine.worlds import Outcome, outcomes, values_of


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    scenarios: dict[str, Any] = {name: partial(scenario, name) for name in MISMATCHES}
    scenarios |= {"unseen": unseen, "small": partial(messages, "small"), "large": partial(messages, "large")}
    return outcomes(scenarios, SIZE, transport)


def _values(transport: str, name: str) -> list[Any]:
    found = values_of(_found(transport), name)
    assert not any(isinstance(value, str) for value in found), found
    return found


@pytest.mark.parametrize("name", MISMATCHES)
def test_every_rank_gets_the_same_error(checked: str, name: str) -> None:
    found = _values(checked, name)
    assert {kind for kind, _, _ in found} == {("MismatchError",)}
    assert len({text for _, text, _ in found}) == 1


@pytest.mark.parametrize("name", MISMATCHES)
def test_error_names_the_field_and_the_minority(checked: str, name: str) -> None:
    assert _values(checked, name)[0][1].split("\n")[0] == MISMATCHES[name].text


@pytest.mark.parametrize("name", MISMATCHES)
def test_error_shows_every_call_and_its_location(checked: str, name: str) -> None:
    shown = _values(checked, name)[0][1].split("\n")[1:]
    assert [line[:9] for line in shown] == ["  rank 0:", "  rank 1:", "  rank 2:"]
    assert all(" at mismatches.py:" in line for line in shown)


@pytest.mark.parametrize("name", MISMATCHES)
def test_next_call_is_right(checked: str, name: str) -> None:
    assert [after for _, _, after in _values(checked, name)] == [3] * SIZE


def test_unobserved_mismatch_is_raised_by_the_next_wait(checked: str) -> None:
    assert _values(checked, "unseen") == [("MismatchError", 3)] * SIZE


@pytest.mark.parametrize("size", ["small", "large"])
def test_unexpected_message_is_an_error_and_skipped(checked: str, size: str) -> None:
    (shape, first), (dtype, second) = _values(checked, size)[1]
    length = {"small": 3, "large": 3000}[size]
    assert (shape, dtype) == ("MismatchError", "MismatchError")
    assert first == f"recv: the receiver expects shape ({length + 1},), the sender sends ({length},)"
    assert second == "recv: the receiver expects dtype float64, the sender sends float32"
