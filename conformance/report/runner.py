"""Runs every case of a plan, and makes the recorded calls again; what came of them fills a grid."""

from __future__ import annotations

import warnings
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
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.replays import add_recording
from collshim.conformance.report.results import FAIL, PASS, CaseResult, Function, Grid
from collshim.conformance.report.verdicts import Verdicts

BEARABLE = 3  # cases of one function that ranks are silent on, before it is asked no further
_SILENT = {"NoAnswer", "DeadlineError"}
_ABSENT = "MissingFunctionError"


class Progress(Protocol):
    """Where a person sees how far it is."""

    def start(self, total: int) -> None:
        """So many cases are to come."""

    def step(self, what: str, count: int = 1) -> None:
        """So many cases of ``what`` are done."""


def fill(grid: Grid, plan: Plan, progress: Progress) -> None:
    """Run all of the plan, case by case."""
    calls = [
        (binding, transport, plan.cases(binding, transport))
        for transport in plan.transports
        for binding in plan.bindings()
    ]
    recorded = list(plan.recordings())
    progress.start(sum(len(cases) for _, _, cases in calls) + len(recorded))
    verdicts = Verdicts.of(plan.subject)
    pools = plan.subject.pools()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is deprecated upstream warns here too; answers are what is compared
        try:
            for binding, transport, cases in calls:
                function = grid.cell(binding.collective, binding.framework.name, transport).function(binding.name)
                _ask(function, binding, pools, transport, cases, verdicts, progress)
        finally:
            pools.close()
        for collective, framework, recording in recorded:
            cell = grid.cell(collective, framework, "threads")
            add_recording(cell.function(recording.asked.api[0]), framework, recording)
            progress.step(f"recordings of {framework}")
    grid.stale += verdicts.stale()


def _ask(
    function: Function,
    binding: Binding,
    pools: Pools,
    transport: str,
    cases: Sequence[Case],
    verdicts: Verdicts,
    progress: Progress,
) -> None:
    """Ask every case of one function, unless it is missing, or its ranks are silent."""
    silent_cases = 0
    function.missing = verdicts.resolves_here and is_missing(placed(pools.prefix, binding.path))
    for case in cases if not function.missing else ():
        verdict = verdicts.known(binding, case)
        if verdict or silent_cases >= BEARABLE:
            function.cases.append(
                CaseResult(str(case), *(verdict or (FAIL, "not asked: the ranks were silent before")))
            )
        else:
            answers = pools.of(transport, case.size).run([binding] * case.size, case)
            function.missing = _all_raised(answers, _ABSENT)
            if function.missing:
                break
            result = _result(binding, case, answers, verdicts)
            function.cases.append(result)
            silent_cases += result.outcome == FAIL and _was_silent(answers)
        progress.step(f"{binding.framework.name}, {transport}")
    if len(function.cases) < len(cases):
        progress.step(f"{binding.framework.name}, {transport}", len(cases) - len(function.cases))


def _result(binding: Binding, case: Case, answers: Sequence[Answer | Failure], verdicts: Verdicts) -> CaseResult:
    lines = [
        f"rank {rank}: {what} is {actual}, should be {expected}"
        for rank, (what, actual, expected) in _differences(binding, case, answers)
    ]
    outcome, why = verdicts.verdict(binding, case, lines)
    traces = [answer.trace for answer in answers if isinstance(answer, Failure)] if outcome == FAIL else []
    text = "\n".join([why, *traces]).strip() if outcome != PASS else ""
    return CaseResult(str(case), outcome, text, inputs=shown.inputs(case), answers=tuple(map(shown.answer, answers)))


def _differences(
    binding: Binding, case: Case, answers: Sequence[Answer | Failure]
) -> list[tuple[int, tuple[str, str, str]]]:
    pairs = [
        (rank, difference)
        for rank, answer in enumerate(answers)
        for difference in differences(binding, case, rank, answer)
    ]
    return [*pairs, *left_too_early(case, answers)]


def _all_raised(answers: Sequence[Answer | Failure], name: str) -> bool:
    return all(isinstance(answer, Failure) and name in answer.classes for answer in answers)


def _was_silent(answers: Sequence[Answer | Failure]) -> bool:
    return any(isinstance(answer, Failure) and bool(_SILENT & set(answer.classes)) for answer in answers)
