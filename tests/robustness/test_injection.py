"""Faults at any moment, drawn from seeds: no wrong result, no hang, and all ranks learn the culprit in time."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from collshim.conformance.effort import THOROUGH
from collshim.conformance.faults.page import INJECTED
from tests.robustness.injection.classes import CLASSES
from tests.robustness.injection.points import POINTS
from tests.robustness.injection.rank import Ending
from tests.robustness.injection.results import run_trials
from tests.robustness.injection.supervisor import Outcome
from tests.robustness.injection.trial import Trial, draw_trial
from tests.robustness.injection.verdict import judge

FOUND = (7031,)  # a deadline that did not count the first slice of the wait
SEEDS = (*range(200 if THOROUGH else 20), *FOUND)
JOBS = 8
LIMIT = 600 if THOROUGH else 150

FIELDS: dict[str, Any] = {"seed": 0, "transport": "processes", "size": 2, "victim": 1, "at": 3, "moment": "before"}
FIELDS |= {"detail": "SIGKILL", "seconds": 0.0, "deadline": 2.0, "check": True, "agent": True}
KILLED = Trial(kind="killed rank", **FIELDS)
HEALTHY = Trial(kind="random delays", **FIELDS)


@pytest.mark.timeout(LIMIT)
def test_drawn_faults_end_as_their_classes_must(record_property: Any) -> None:
    found = run_trials([draw_trial(seed) for seed in SEEDS], JOBS)
    record_property("injected faults", {result.trial.kind: 1 for result in found})
    assert "\n".join(result.line() for result in found if not result.holds) == ""


def test_seed_determines_trial_and_stream() -> None:
    for seed in range(50):
        assert draw_trial(seed) == draw_trial(seed)
        assert [*islice(draw_trial(seed).steps(), 40)] == [*islice(draw_trial(seed).steps(), 40)]


def test_every_default_class_is_drawn() -> None:
    assert {draw_trial(seed).kind for seed in range(1000)} == {
        name for name, found in CLASSES.items() if not found.asked
    }


def test_stop_points_are_steps_of_engine_or_torch() -> None:
    missing = [str(point) for points in POINTS.values() for point in points if not hasattr(point.holder(), point.name)]
    assert missing == []


def test_fault_page_scores_every_class() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    missing = [name for name in CLASSES if f"\n| {name} | " not in page.partition(INJECTED)[2]]
    assert missing == [], "write it with python -m tests.robustness.injection --seeds 0-3 --write docs/faults.md"


def told(text: str = "rank 1 has left", **changes: Any) -> Ending:
    ending = Ending("PeerError", text, True, False, False, 4, (0, 1), 10.0, 11.0)
    return ending._replace(**changes)


def came(**changes: Any) -> Ending:
    return told("", error="", ours=False, **changes)


def outcome(*endings: Ending | None, **changes: Any) -> Outcome:
    found = {rank: ending for rank, ending in enumerate(endings) if ending is not None}
    return Outcome(found, 10.0, None, {0: 0, 1: -9}, 0.0, [], "", 1.0)._replace(**changes)


def test_timely_report_of_the_death_suffices() -> None:
    assert judge(KILLED, outcome(told(), None)).reasons == []
    assert judge(KILLED, outcome(told(ended=12.9), None)).seconds == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (outcome(None, None), "rank 0 hangs"),
        (outcome(came(), None), "rank 0 is told nothing"),
        (outcome(told(wrong=True, ours=False), None), "rank 0 got a foreign PeerError"),
        (outcome(told(ours=False), None), "rank 0 got a foreign PeerError"),
        (outcome(told("the connection broke"), None), "rank 0 does not name rank 1"),
        (outcome(told(ended=13.1), None), "rank 0 is told after 3.10 s"),
        (outcome(told(), came()), "rank 1, the victim, came to the end, should die"),
        (outcome(told(), None, codes={0: -11, 1: -9}), "rank 0's process ended by SIGSEGV"),
        (outcome(told(), None, codes={0: None, 1: -9}), "rank 0 has ended, its process has not"),
        (outcome(told(), None, left=["port 1"]), "left behind: port 1"),
        (outcome(told(), None, fault_at=None), "the fault did not come to pass"),
    ],
)
def test_wrong_outcome_is_explained(seen: Outcome, reason: str) -> None:
    found = judge(KILLED, seen).reasons
    assert reason in "; ".join(found)
    assert len(found) == 1


def test_lag_of_the_machine_is_allowed_for() -> None:
    assert judge(KILLED, outcome(told(ended=13.1), None, lag=0.05)).reasons == []


def test_error_in_a_healthy_world_is_a_false_alarm() -> None:
    whole = {0: 0, 1: 0}
    assert judge(HEALTHY, outcome(came(), came(), codes=whole)).reasons == []
    assert len(judge(HEALTHY, outcome(told(), came(), codes=whole)).wrong) == 1
