"""Runs the mutants: copies the package for each, runs the suite on the copy, and returns the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from collshim.conformance.mutants import tree
from collshim.conformance.mutants.mutant import Mutant
from collshim.conformance.mutants.suite import Suite

SECONDS = 300.0
"""The time limit of the suite on one mutant; a mutant that hangs longer was caught earlier, or survives."""

CAUGHT, SURVIVED, SILENT = "caught", "survived", "seen, and no comparison names its collective"
DEAD, LAME, VOID = "not imported", "no test passes", "the test that caught it fails without it"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant.

    Attributes:
        mutant: the mutant.
        outcome: one of the outcomes above; ``CAUGHT`` is the only good one.
        test: the id of the test that caught it, below the suite's folder.
        message: the line that caught it; if there is none, what failed instead.
        seconds: how long it took.
    """

    mutant: Mutant
    outcome: str
    test: str = ""
    message: str = ""
    seconds: float = 0.0


def run_mutants(
    mutants: Sequence[Mutant],
    *,
    jobs: int = 2,
    seconds: float = SECONDS,
    report: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """Run the mutants, ``jobs`` at once, and return their verdicts in order; call ``report`` with each.

    At the end, the tests that caught a mutant are run without mutants: a test that then fails has caught nothing.

    Raises:
        PatchError: a mutant does not fit the code.
    """
    with TemporaryDirectory(prefix="collshim-mutants-") as folder:
        suite, baseline = Suite(), tree.copy(Path(folder) / "baseline")

        def try_mutant(mutant: Mutant) -> Verdict:
            with TemporaryDirectory(dir=folder) as own:
                verdict = _verdict(mutant, suite, baseline, Path(own), seconds)
            report(verdict)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            found = _verdicts(pool, try_mutant, mutants, suite)
        return _run_controls(found, suite, baseline, seconds * 2)


def _verdicts(
    pool: ThreadPoolExecutor, try_mutant: Callable[[Mutant], Verdict], mutants: Sequence[Mutant], suite: Suite
) -> list[Verdict]:
    """Return the verdicts; an interrupt ends the running suites and leaves nothing behind."""
    try:
        return list(pool.map(try_mutant, mutants))
    except BaseException:
        suite.stop()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _verdict(mutant: Mutant, suite: Suite, baseline: Path, folder: Path, seconds: float) -> Verdict:
    start = time.monotonic()
    tree.mutate(baseline, folder, mutant)
    asked = {"module": mutant.module, "collectives": mutant.collectives, "framework": mutant.framework}
    seen = suite.seen(folder, {**asked, "transport": mutant.transport, "controls": False}, seconds)
    outcome = _outcome(seen)
    failed: dict[str, str] = seen["failed"]
    message = seen["message"] or next(iter(failed.values()), "") or (seen["output"] if outcome != SURVIVED else "")
    return Verdict(mutant, outcome, _below(seen["test"]), message, time.monotonic() - start)


def _outcome(seen: dict[str, Any]) -> str:
    if not seen["imported"]:
        return DEAD
    if seen["test"]:
        return CAUGHT if seen["passed"] else LAME
    return SILENT if seen["failed"] else SURVIVED


def _run_controls(verdicts: list[Verdict], suite: Suite, baseline: Path, seconds: float) -> list[Verdict]:
    tests = sorted({verdict.test for verdict in verdicts if verdict.outcome == CAUGHT})
    if not tests:
        return verdicts
    asked = {"module": "", "collectives": [], "framework": "", "transport": "", "controls": True}
    seen = suite.seen(baseline, asked, seconds, tests)
    failed = {_below(test): why for test, why in seen["failed"].items()}
    return [_void(one, failed[one.test]) if one.test in failed else one for one in verdicts]


def _void(verdict: Verdict, why: str) -> Verdict:
    return Verdict(verdict.mutant, VOID, verdict.test, why, verdict.seconds)


def _below(test: str) -> str:
    return test.removeprefix("collshim/conformance/")
