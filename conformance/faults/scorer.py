"""Runs every program and its twin in every way of running, and counts the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from collshim.conformance.faults.job import run
from collshim.conformance.faults.program import Program
from collshim.conformance.faults.rank import is_judged
from collshim.conformance.faults.verdict import Score, judge, passed, why_not

DEADLINE = 2.0
"""Seconds that a wait in a collective may take, in every program."""

PATIENCE = 8.0
"""Seconds after which a rank that has not ended counts as hung; torch waits more than once for some deadlines."""


@dataclass(frozen=True)
class Result:
    """One program in one way of running it.

    Attributes:
        score: the score of the fault.
        alarm: what went wrong with its twin; empty if it passed.
    """

    program: Program
    face: str
    score: Score
    alarm: str

    @property
    def caught(self) -> bool:
        """Whether the fault was reported as required."""
        return self.score.caught(DEADLINE)


@dataclass(frozen=True)
class Tally:
    """The counts of one way of running; programs whose fault no check can detect do not count.

    Attributes:
        programs: the number of programs that run in this way.
        detected, named, shown: the numbers with the fault detected, the ranks named, the line shown.
        in_text: the number with the line in the error's text.
        classes: the number of classes.
        caught: the number of classes in which every program was caught.
        slowest: the most seconds until every rank had its error, among detected faults.
        killed: the number of ranks that a signal ended.
        alarms: the number of twins that failed.
    """

    programs: int
    detected: int
    named: int
    shown: int
    in_text: int
    classes: int
    caught: int
    slowest: float
    killed: int
    alarms: int

    @property
    def perfect(self) -> bool:
        """Whether every class was caught, with no false alarm and no rank killed."""
        return self.caught == self.classes and not self.alarms and not self.killed


def score(
    programs: Sequence[Program],
    faces: Sequence[str],
    *,
    jobs: int,
    patience: float = PATIENCE,
    report: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run the programs in these ways, ``jobs`` at once; call ``report`` with each result."""

    def result_of(program: Program, face: str) -> Result:
        fault_score = judge(program, run(face, program.name, "fault", deadline=DEADLINE, patience=patience))
        twin = run(face, program.name, "twin", deadline=DEADLINE, patience=patience)
        result = Result(program, face, fault_score, "" if passed(twin) else why_not(twin))
        report(result)
        return result

    pairs = [(program, face) for face in faces for program in programs if program.runs_on(face)]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda pair: result_of(*pair), pairs))


def tally(results: Sequence[Result], face: str) -> Tally:
    """Count the results of the programs that ran in this way."""
    results_of_face = [result for result in results if result.face == face]
    scored_results = [result for result in results_of_face if not result.program.limit]
    scores = [result.score for result in scored_results]
    classes = {result.program.fault for result in scored_results}
    missed_classes = {result.program.fault for result in scored_results if not result.caught}
    return Tally(
        programs=len(scored_results),
        detected=sum(score.detected for score in scores),
        named=sum(score.named for score in scores),
        shown=sum(bool(score.line) for score in scores),
        in_text=sum(score.line == "text" for score in scores),
        classes=len(classes),
        caught=len(classes - missed_classes),
        slowest=max((score.seconds for score in scores if score.seconds is not None), default=0.0),
        killed=sum(result.score.killed for result in results_of_face),
        alarms=sum(bool(result.alarm) for result in results_of_face),
    )


def reached(results: Sequence[Result], faces: Sequence[str]) -> bool:
    """Return whether the goal was reached in every way of running that counts."""
    return all(tally(results, face).perfect for face in faces if is_judged(face))
