"""The suite's recorded calls and cases on a real framework that collshim carries, in worlds of its own launcher."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collshim.conformance.foreign.ranks import Foreign
from collshim.conformance.pool import Start
from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.jobs import Job
from collshim.conformance.recorder.performing import Answer
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.results import FAIL, CaseResult, Function, Grid
from collshim.conformance.report.runner import Asker
from collshim.conformance.report.verdicts import Verdicts
from collshim.conformance.subject import Subject

SCRIPT = Path(__file__).with_name("carried_rank.py")
_BROKEN = "collshim.errors.CommunicationError"
_CASE_SECONDS = 30.0


def answer_all(framework: str, calls: Sequence[Asked]) -> list[list[Answer]]:
    """Return every rank's answer to each call; all are in one world, which is restarted after a call that broke it."""
    found: list[list[Answer]] = []
    waiting, asked_again = list(calls), set[str]()
    while waiting:
        batch = _batch(waiting)
        with Job(framework, batch, sys.executable, SCRIPT) as job:
            there, ended = job.wait()
            log = job.log() if ended else ""
        settled = _settled(there, len(batch), ended)
        last = waiting[len(settled) - 1].id
        if any("ended" in answer for answer in settled[-1]) and last not in asked_again:
            asked_again.add(last)  # on a busy machine an answer may be late
            settled.pop()
        elif all("ended" in answer for answers in settled for answer in answers):
            raise RuntimeError(f"no rank answered {waiting[0].id} ({ended}):\n{log}")
        found += settled
        waiting = waiting[len(settled) :]
    return found


def _batch(waiting: list[Asked]) -> list[Asked]:
    if waiting[0].alone:
        return waiting[:1]
    return waiting[: next((index for index, asked in enumerate(waiting) if asked.alone), len(waiting))]


def _settled(there: list[list[Answer]], count: int, ended: str) -> list[list[Answer]]:
    settled: list[list[Answer]] = []
    for index in range(count):
        answers = [one[index] if index < len(one) else {"ended": ended} for one in there]
        settled.append(answers)
        if any("ended" in answer or _BROKEN in answer.get("raised", ()) for answer in answers):
            break
    return settled


class _CarriedRanks(Foreign):
    """Ranks like the real framework's, with the patch."""

    @property
    def program(self) -> list[str]:
        """Return the rank's script."""
        return [str(SCRIPT)]


@dataclass(frozen=True)
class _Carried(Subject):
    """The real framework, carried."""

    @property
    def transports(self) -> Mapping[str, Start]:
        """Return ranks of its own launcher."""
        return {"processes": _CarriedRanks(self.framework, self.prefix, self.python).ranks}


class _Silent:
    """A progress without a display."""

    def start(self, total: int) -> None:
        """Do nothing."""

    def step(self, what: str, count: int = 1) -> None:
        """Do nothing."""


def find_failures(framework: str, size: int, unasked: str) -> tuple[int, list[tuple[str, CaseResult]]]:
    """Return the number of cases of the framework's spellings, and the failed ones, each with its spelling.

    ``unasked`` is a pattern of cases, ``spelling: case``, that are left out.
    """
    plan = Plan(
        _Carried(framework, "", foreign=True, python=sys.executable, seconds=_CASE_SECONDS), ["processes"], sizes=[size]
    )
    asker, grid = Asker(plan), Grid({})
    asker.verdicts = Verdicts((), False, False)
    found: list[tuple[str, CaseResult]] = []
    count = 0
    try:
        for binding in plan.bindings():
            cases = [
                case for case in plan.cases(binding, "processes") if not re.search(unasked, f"{binding.name}: {case}")
            ]
            function: Function = grid.cell(binding.collective, framework, "processes").function(binding.name)
            asker.ask(function, binding, "processes", cases, _Silent())
            count += len(function.cases)
            found += [(binding.name, result) for result in function.cases if result.outcome == FAIL]
            found += [(binding.name, CaseResult("", FAIL, "the function is missing"))] if function.missing else []
    finally:
        asker.pools.close()
    return count, found
