"""The command line: trials by seed, several at once, a line for each that fails, and a table by class."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from tests.robustness.injection import partitions
from tests.robustness.injection.classes import CLASSES
from tests.robustness.injection.page import FACES, write
from tests.robustness.injection.results import JOBS, Result, run_trials
from tests.robustness.injection.trial import RAW, TRANSPORTS, draw_trial


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if a trial does not hold."""
    chosen = _parse(arguments)
    transports = (chosen.transport,) if chosen.transport else TRANSPORTS
    if chosen.write is not None:
        return _write(chosen)
    trials = [draw_trial(seed, transports, chosen.ranks, chosen.kind) for seed in chosen.seeds]
    if chosen.kind == "partition" and partitions.reason():
        print(f"no network can be cut here: {partitions.reason()}")
        return 1
    begun = time.monotonic()

    def report(result: Result) -> None:
        if chosen.verbose or not result.holds:
            print(f"{result.outcome.seconds:5.2f} s {result.line()}", flush=True)
        if chosen.log and not result.holds:
            print(result.outcome.log, flush=True)

    found = run_trials(trials, chosen.jobs, report)
    print(table(found))
    failed = [result for result in found if not result.holds]
    took = time.monotonic() - begun
    print(f"{len(found)} seeds, {len(failed)} failed, {took:.0f} s, {took / max(1, len(found)):.2f} s each")
    return 1 if failed else 0


def _write(chosen: argparse.Namespace) -> int:
    """Run trials of every class on every transport, for the page."""
    trials = [
        draw_trial(seed, (face,), chosen.ranks, name)
        for name, found in CLASSES.items()
        for face in FACES
        if face in found.transports and not (found.asked and partitions.reason())
        for seed in chosen.seeds
    ]

    def report(result: Result) -> None:
        if not result.holds and result.trial.transport != RAW:
            print(result.line(), flush=True)

    found = run_trials(trials, chosen.jobs, report)
    span = f"{chosen.seeds.start}-{chosen.seeds.stop - 1}"
    write(chosen.write, found, f"python -m tests.robustness.injection --seeds {span} --write docs/faults.md")
    return 1 if any(not result.holds and result.trial.transport != RAW for result in found) else 0


def table(found: Sequence[Result]) -> str:
    """Return a line for each class: how many trials held, how many were repeated, and the slowest."""
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


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.injection", description=__doc__)
    parser.add_argument("--seeds", type=_span, default=range(20), metavar="A-B", help="0-19 by default")
    parser.add_argument("--transport", choices=(*TRANSPORTS, RAW), help=f"both by default; {RAW}: without collshim")
    parser.add_argument("--ranks", type=_pair, default=(2, 4), metavar="A-B", help="2-4 by default")
    parser.add_argument("--kind", choices=list(CLASSES), default="", metavar="CLASS", help="only this class")
    parser.add_argument("--jobs", type=int, default=JOBS, help="trials at once")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="score every class by these seeds; docs/faults.md")
    parser.add_argument("--verbose", action="store_true", help="print a line for every trial")
    parser.add_argument("--log", action="store_true", help="print the output of the processes of failed trials")
    return parser.parse_args(arguments)


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _pair(text: str) -> tuple[int, int]:
    found = _span(text)
    return found.start, found.stop - 1
