"""Runs every case of a plan and repeats the recorded calls; the results fill a grid."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from collshim.conformance.bindings.answers import Answer, Failure
from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import placed
from collshim.conformance.cases import Case
from collshim.conformance.comparison import differences, left_too_early
from collshim.conformance.missing import is_missing
from collshim.conformance.pool import Pools
from collshim.conformance.report import shown
from collshim.conformance.report.listed import NOTHING, Listed
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.replays import add_recording
from collshim.conformance.report.results import DEVIATION, FAIL, PASS, CaseResult, Function, Grid
from collshim.conformance.report.verdicts import Verdicts

BEARABLE = 3  # lost cases before a function is given up; given-up functions before all are, if none has answered
_LOST = {"NoAnswer", "DeadlineError", "ProcessEnded"}
_ABSENT = "MissingFunctionError"


class Progress(Protocol):
    """The interface of a progress display."""

    def start(self, total: int) -> None:
        """Add ``total`` cases to the expected number."""

    def step(self, what: str, count: int = 1) -> None:
        """Count ``count`` cases of ``what`` as done."""


class Asker:
    """Runs functions' cases on live ranks.

    Args:
        plan: the cases, and the subject.
        xfails: the cases known to fail.
        pools: the ranks, which are not closed here; new ones by default.
    """

    def __init__(self, plan: Plan, xfails: Listed = NOTHING, pools: Pools | None = None) -> None:
        self.plan = plan
        self.verdicts = Verdicts.of(plan.subject, xfails)
        self.pools = pools or plan.subject.pools()
        self._lost: Counter[str] = Counter()
        self._has_answered = False

    def ask(
        self, function: Function, binding: Binding, transport: str, cases: Sequence[Case], progress: Progress
    ) -> None:
        """Run every case of one function, unless it is missing, or its ranks hang or end."""
        verdicts = self.verdicts
        function.missing = verdicts.resolves_here and is_missing(placed(self.pools.prefix, binding.path))
        for case in cases if not function.missing else ():
            unasked = verdicts.known(binding, case)
            if unasked is None and self._is_given_up(binding):
                unasked = verdicts.unasked(binding, case)
            if unasked is not None:
                whose = verdicts.owner(binding, case) if unasked[0] == DEVIATION else ""
                function.cases.append(CaseResult(str(case), *unasked, whose=whose))
            else:
                answers = self.pools.of(transport, case.size).run([binding] * case.size, case)
                function.missing = _all_raised(answers, _ABSENT)
                if function.missing:
                    break
                result = self.result(binding, case, answers)
                function.cases.append(result)
                self._note(binding, case, result, answers)
            progress.step(f"{binding.framework.name}, {transport}")
        if len(function.cases) < len(cases):
            progress.step(f"{binding.framework.name}, {transport}", len(cases) - len(function.cases))

    def _note(self, binding: Binding, case: Case, result: CaseResult, answers: Sequence[Answer | Failure]) -> None:
        """Record whether the ranks hung or ended, whatever form of the function was called."""
        is_lost = any(isinstance(answer, Failure) and bool(_LOST & set(answer.classes)) for answer in answers)
        self._has_answered = self._has_answered or not is_lost
        if result.outcome == FAIL or self.verdicts.is_named(binding, case):
            self._lost[binding.path] += is_lost

    def _is_given_up(self, binding: Binding) -> bool:
        """Return whether the function lost the ranks too often; if several did and none answered, all are given up."""
        given_up = [path for path, cases in self._lost.items() if cases >= BEARABLE]
        return binding.path in given_up or (len(given_up) >= BEARABLE and not self._has_answered)

    def result(self, binding: Binding, case: Case, answers: Sequence[Answer | Failure]) -> CaseResult:
        """Return the result of a case."""
        lines = differing(binding, case, answers, texts=not self.plan.subject.module)
        outcome, why = self.verdicts.verdict(binding, case, lines)
        traces = [answer.trace for answer in answers if isinstance(answer, Failure)] if outcome == FAIL else []
        text = "\n".join([why, *traces]).strip() if outcome != PASS else ""
        return CaseResult(
            str(case),
            outcome,
            text,
            inputs=shown.inputs(case),
            answers=tuple(map(shown.answer, answers)),
            expected=shown.expected(binding, case) if outcome == FAIL else (),
            whose=self.verdicts.owner(binding, case) if outcome == DEVIATION else "",
        )


def fill(grid: Grid, plan: Plan, progress: Progress, xfails: Listed = NOTHING) -> None:
    """Run the complete plan, case by case."""
    calls = [
        (binding, transport, plan.cases(binding, transport))
        for transport in plan.transports
        for binding in plan.bindings()
    ]
    recorded = list(plan.recordings())
    progress.start(sum(len(cases) for _, _, cases in calls) + len(recorded))
    asker = Asker(plan, xfails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # functions deprecated upstream warn here too; only answers are compared
        try:
            for binding, transport, cases in calls:
                function = grid.cell(binding.collective, binding.framework.name, transport).function(binding.name)
                asker.ask(function, binding, transport, cases, progress)
        finally:
            asker.pools.close()
        for collective, framework, recording in recorded:
            cell = grid.cell(collective, framework, "threads")
            add_recording(cell.function(recording.asked.api[0]), framework, recording)
            progress.step(f"recordings of {framework}")
    grid.stale += asker.verdicts.stale()


def differing(binding: Binding, case: Case, answers: Sequence[Answer | Failure], *, texts: bool) -> list[str]:
    """Return a sentence for each difference; exceptions are compared by class and, if ``texts``, also by text."""
    pairs = [
        (rank, difference)
        for rank, answer in enumerate(answers)
        for difference in differences(binding, case, rank, answer, texts=texts)
    ]
    found = [*pairs, *left_too_early(case, answers)]
    return [f"rank {rank}: {what} is {actual}, should be {expected}" for rank, (what, actual, expected) in found]


def _all_raised(answers: Sequence[Answer | Failure], name: str) -> bool:
    return all(isinstance(answer, Failure) and name in answer.classes for answer in answers)
