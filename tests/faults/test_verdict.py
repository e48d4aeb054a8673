"""The judge: what counts as detected, named and shown, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from collshim.conformance.faults.job import Run
from collshim.conformance.faults.program import Program
from collshim.conformance.faults.rank import Ending
from collshim.conformance.faults.verdict import Score, judge, passed, ranks_named, why_not

RANKS = frozenset(range(3))
NOBODY: frozenset[int] = frozenset()
TEXT = "all_reduce: ranks disagree on op: rank 1 has barrier\n  rank 1: barrier() at wrong.py:7"


def program(**changes: Any) -> Program:
    fields: dict[str, Any] = {"blame": frozenset({1}), "affected": RANKS, "dead": NOBODY, "lines": (7,), "limit": ""}
    return Program("wrong", "wrong_twin", "wrong.py", "different op", "", options=(), on=(), **(fields | changes))


def reported(text: str = TEXT, ended: float = 1.0, lines: tuple[int, ...] = (9,)) -> Ending:
    return Ending("MismatchError", text, True, lines, 0.0, ended)


def returned() -> Ending:
    return Ending("", "", False, (), 0.0, 1.0)


def own_error() -> Ending:
    return Ending("ZeroDivisionError", "division by zero", False, (7,), 0.0, 1.0)


def judged(*endings: Ending | None, signals: dict[int, int] | None = None, **changes: Any) -> Score:
    found = {rank: ending for rank, ending in enumerate(endings) if ending is not None}
    return judge(program(**changes), Run(found, signals or {}, NOBODY))


def test_error_on_every_rank_with_location_is_caught() -> None:
    score = judged(reported(), reported(), reported(ended=2.5))
    assert (score.outcome, score.named, score.line, score.seconds) == ("told", True, "text", 2.5)
    assert score.caught(deadline=2.0)


def test_error_after_the_deadline_is_late() -> None:
    assert not judged(reported(), reported(), reported(ended=3.01)).caught(deadline=2.0)


@pytest.mark.parametrize(
    ("endings", "outcome"),
    [
        ((reported(), reported(), returned()), "silent"),
        ((reported(), reported(), own_error()), "silent"),
        ((reported(), reported(), None), "hang"),
        ((returned(), returned(), returned()), "silent"),
    ],
)
def test_one_uninformed_rank_suffices(endings: tuple[Ending | None, ...], outcome: str) -> None:
    score = judged(*endings)
    assert (score.outcome, score.seconds, score.named) == (outcome, None, False)
    assert not score.caught(deadline=2.0)


def test_rank_that_need_not_learn_may_continue() -> None:
    assert judged(returned(), reported(), returned(), affected=frozenset({1})).caught(deadline=2.0)


def test_signal_is_named_and_counted() -> None:
    score = judged(reported(), None, reported(), signals={1: 6})
    assert (score.outcome, score.killed) == ("SIGABRT", 1)


def test_rank_that_kills_itself_is_not_counted() -> None:
    score = judged(reported(), None, reported(), signals={1: 9}, dead=frozenset({1}), affected=frozenset({0, 2}))
    assert score.caught(deadline=2.0)


def test_every_innocent_rank_must_name_the_culprit() -> None:
    assert not judged(reported("connection closed"), reported(), reported()).named
    assert judged(reported(), reported("connection closed"), reported()).named


def test_traceback_of_the_named_culprit_shows_the_line() -> None:
    text = "Rank 0 is running ALLREDUCE, but Rank 1 is running BARRIER"
    assert judged(reported(text), reported(text, lines=(7,)), reported(text)).line == "traceback"
    assert judged(reported("timeout"), reported("timeout", lines=(7,)), reported("timeout")).line == ""
    assert judged(reported(text, lines=(7,)), reported(text), reported(text)).line == ""


def test_every_marked_line_must_be_shown_exactly() -> None:
    assert judged(*[reported("rank 1 at wrong.py:7")] * 3, lines=(7, 8)).line == ""
    assert judged(*[reported("rank 1 at wrong.py:71")] * 3).line == ""


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("rank 1 has max, the others sum", {1}),
        ("Ranks 1, 2 failed to pass", {1, 2}),
        ("making a group of ranks [0, 2] at x.py:3", {0, 2}),
        ("ranks disagree on shape (4,)", set[int]()),
        ("frank 3, 4 of 5", set[int]()),
    ],
)
def test_ranks_are_parsed_from_a_text(text: str, ranks: set[int]) -> None:
    assert ranks_named(text) == ranks


def test_twin_passes_if_every_rank_returned() -> None:
    well = {rank: returned() for rank in range(3)}
    assert passed(Run(well, {}, NOBODY))
    assert not passed(Run({**well, 2: own_error()}, {}, NOBODY))
    assert not passed(Run({0: returned(), 1: returned()}, {}, NOBODY))
    assert not passed(Run(well, {0: 11}, NOBODY))
    assert not passed(Run(well, {}, frozenset({1})))


def test_reason_for_a_failed_twin_is_shown() -> None:
    well = {rank: returned() for rank in range(3)}
    assert why_not(Run({**well, 2: own_error()}, {}, NOBODY)) == "rank 2: ZeroDivisionError: division by zero"
    assert why_not(Run(well, {0: 11}, NOBODY)) == "rank 0: SIGSEGV"
