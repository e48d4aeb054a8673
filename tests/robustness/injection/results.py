"""Trials carried out, several at once, and their outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.robustness.injection.supervisor import Outcome, carry_out
from tests.robustness.injection.trial import Trial
from tests.robustness.injection.verdict import Verdict, judge

JOBS = 3 * (os.cpu_count() or 1)
"""Trials at once, which mostly wait for a deadline."""


class Result(NamedTuple):
    """A trial, its outcome, and whether it was repeated alone."""

    trial: Trial
    outcome: Outcome
    verdict: Verdict
    again: bool = False

    @property
    def holds(self) -> bool:
        return not self.verdict.reasons

    def line(self) -> str:
        """Return the failure, and the command to reproduce it."""
        reasons = "; ".join(self.verdict.reasons)
        return f"{reproduction(self.trial)}\n  {self.trial}\n  {reasons}"


def reproduction(trial: Trial) -> str:
    """Return the command that repeats a trial."""
    return f"python -m tests.robustness.injection --seeds {trial.seed}{trial.chosen}"


def try_out(trial: Trial) -> Result:
    """Carry out a trial."""
    outcome = carry_out(trial)
    return Result(trial, outcome, judge(trial, outcome))


def run_trials(
    trials: Sequence[Trial], jobs: int = JOBS, report: Callable[[Result], None] = lambda result: None
) -> list[Result]:
    """Carry out trials, several at once, and repeat those alone that the others may have disturbed."""

    def one(trial: Trial) -> Result:
        result = try_out(trial)
        if not _is_spoilt(result):
            report(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, trials))
    for place, result in enumerate(found):
        if _is_spoilt(result):
            found[place] = try_out(result.trial)._replace(again=True)
            report(found[place])
    return found


def _is_spoilt(result: Result) -> bool:
    """Return whether the only failure is lateness, or a world whose deadline was too short before the fault came."""
    verdict = result.verdict
    if result.trial.fault.fate != "healthy" and result.outcome.fault_at is None:
        return True
    return bool(verdict.late) and not verdict.wrong and not verdict.unnamed
