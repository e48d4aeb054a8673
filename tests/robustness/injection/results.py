"""Trials carried out, several at once, and what came of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.robustness.injection.supervisor import Outcome, carry_out
from tests.robustness.injection.trial import Trial
from tests.robustness.injection.verdict import Verdict, judge

JOBS = 3 * (os.cpu_count() or 1)
"""Trials at once: they mostly wait for a deadline."""


class Result(NamedTuple):
    """A trial, what became of it, and whether it was carried out again, alone."""

    trial: Trial
    outcome: Outcome
    verdict: Verdict
    again: bool = False

    @property
    def holds(self) -> bool:
        return not self.verdict.reasons

    def line(self) -> str:
        """What is wrong, and how to see it again."""
        reasons = "; ".join(self.verdict.reasons)
        return f"{reproduction(self.trial)}\n  {self.trial}\n  {reasons}"


def reproduction(trial: Trial) -> str:
    """The command that carries a trial out again."""
    return f"python -m tests.robustness.injection --seeds {trial.seed}{trial.chosen}"


def tried(trial: Trial) -> Result:
    """Carry a trial out."""
    outcome = carry_out(trial)
    return Result(trial, outcome, judge(trial, outcome))


def results(
    trials: Sequence[Trial], jobs: int = JOBS, report: Callable[[Result], None] = lambda result: None
) -> list[Result]:
    """Carry trials out, several at once; what the others may have spoilt once more, alone."""

    def one(trial: Trial) -> Result:
        result = tried(trial)
        if not _is_spoilt(result):
            report(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, trials))
    for place, result in enumerate(found):
        if _is_spoilt(result):
            found[place] = tried(result.trial)._replace(again=True)
            report(found[place])
    return found


def _is_spoilt(result: Result) -> bool:
    """Whether all that is wrong is lateness, or a world that found its deadline too short before the fault came."""
    verdict = result.verdict
    if result.trial.fault.fate != "healthy" and result.outcome.fault_at is None:
        return True
    return bool(verdict.late) and not verdict.wrong and not verdict.unnamed
