"""The command line: trials by seed, several at once, a line for each that fails, and a table by class."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.robustness.injection import partitions
from tests.robustness.injection.classes import CLASSES
from tests.robustness.injection.supervisor import Outcome, carry_out
from tests.robustness.injection.trial import RAW, TRANSPORTS, Trial, drawn
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
    """The command that carries a trial out again; a class that is not drawn by itself is named."""
    is_named = trial.fault.asked or trial.transport == RAW or trial.is_chosen
    named = f" --transport {trial.transport} --kind {trial.kind!r}" if is_named else ""
    return f"python -m tests.robustness.injection --seeds {trial.seed}{named}"


def tried(trial: Trial) -> Result:
    """Carry a trial out."""
    outcome = carry_out(trial)
    return Result(trial, outcome, judge(trial, outcome))


def results(
    trials: Sequence[Trial], jobs: int = JOBS, report: Callable[[Result], None] = lambda result: None
) -> list[Result]:
    """Carry trials out, several at once. What was late beside the others alone is carried out again without them."""

    def one(trial: Trial) -> Result:
        result = tried(trial)
        if not result.verdict.late or result.verdict.wrong or result.verdict.unnamed:
            report(result)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, trials))
    for place, result in enumerate(found):
        if result.verdict.late and not result.verdict.wrong and not result.verdict.unnamed:
            found[place] = tried(result.trial)._replace(again=True)
            report(found[place])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where a trial does not hold."""
    chosen = _parsed(arguments)
    transports = (chosen.transport,) if chosen.transport else TRANSPORTS
    trials = [drawn(seed, transports, chosen.ranks, chosen.kind) for seed in chosen.seeds]
    if chosen.kind == "partition" and partitions.reason():
        print(f"no network can be cut here: {partitions.reason()}")
        return 1
    begun = time.monotonic()

    def report(result: Result) -> None:
        if chosen.verbose or not result.holds:
            print(f"{result.outcome.seconds:5.2f} s {result.line()}", flush=True)
        if chosen.log and not result.holds:
            print(result.outcome.log, flush=True)

    found = results(trials, chosen.jobs, report)
    print(table(found))
    failed = [result for result in found if not result.holds]
    took = time.monotonic() - begun
    print(f"{len(found)} seeds, {len(failed)} failed, {took:.0f} s, {took / max(1, len(found)):.2f} s each")
    return 1 if failed else 0


def table(found: Sequence[Result]) -> str:
    """A line for each class: how many trials held, how many were carried out again, and the slowest."""
    lines = []
    for name in CLASSES:
        of_class = [result for result in found if result.trial.kind == name]
        if of_class:
            held = sum(result.holds for result in of_class)
            again = sum(result.again for result in of_class)
            slowest = max(result.verdict.seconds for result in of_class)
            words = f"{held} of {len(of_class)} held, slowest told after {slowest:.2f} s"
            lines.append(f"{name:45} {words}{f', {again} again alone' if again else ''}")
    return "\n".join(lines)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.injection", description=__doc__)
    parser.add_argument("--seeds", type=_span, default=range(20), metavar="A-B", help="0-19 by default")
    parser.add_argument("--transport", choices=(*TRANSPORTS, RAW), help=f"both by default; {RAW}: without collshim")
    parser.add_argument("--ranks", type=_pair, default=(2, 4), metavar="A-B", help="2-4 by default")
    parser.add_argument("--kind", choices=list(CLASSES), default="", metavar="CLASS", help="of this class alone")
    parser.add_argument("--jobs", type=int, default=JOBS, help="trials at once")
    parser.add_argument("--verbose", action="store_true", help="a line for every trial")
    parser.add_argument("--log", action="store_true", help="what the processes of failed trials printed")
    return parser.parse_args(arguments)


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _pair(text: str) -> tuple[int, int]:
    found = _span(text)
    return found.start, found.stop - 1
