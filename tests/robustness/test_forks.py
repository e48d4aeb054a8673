"""A process that a rank forks is not a rank: its collectives are refused, and the rank continues."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

from collshim.launching.kinds import RANK_KINDS
from tests.engine.worlds import on_ranks
from tests.robustness.scenarios.forks import PATIENCE, forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
TRANSPORTS = RANK_KINDS
REFUSED = ("a collective", "a recalled collective", "a group", "torch's", "OneFlow's", "MindSpore's", "MegEngine's")
ANSWERS = "answers"
OWN, END = "a world of its own", "an end that is not by force"


@cache
def _found(transport: str) -> list[dict[str, Any]]:
    names = (*REFUSED, ANSWERS, OWN, END) if transport == "processes" else (*REFUSED, ANSWERS, OWN)
    return on_ranks(forks, 2, transport, *names, wait=PATIENCE, within=100)


@pytest.mark.parametrize("name", [*REFUSED, "multiprocessing"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_child_that_calls_learns_it_is_no_rank(transport: str, name: str) -> None:
    for text, status in (seen[name] for seen in _found(transport)):
        assert text.startswith("WorldError: process ")
        assert "is not a rank itself" in text
        assert status == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_child_gets_the_answers_of_its_rank(transport: str) -> None:
    for rank, seen in enumerate(_found(transport)):
        assert seen[ANSWERS] == (seen["parent's answers"], 0)
        assert seen["parent's answers"].startswith(f"[True, {rank}, 2, ")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_child_can_have_its_own_world(transport: str) -> None:
    assert [seen[OWN] for seen in _found(transport)] == [("[0, 1]", 0)] * 2


def test_child_of_a_process_can_end_normally() -> None:
    assert [seen[END] for seen in _found("processes")] == [("", 0)] * 2


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_parent_continues(transport: str) -> None:
    assert [seen["parent"] for seen in _found(transport)] == [[2.0, 2.0, 2.0]] * 2
