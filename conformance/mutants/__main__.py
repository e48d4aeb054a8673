"""``python -m collshim.conformance.mutants``: run every mutant; the exit status is 1 if one is not caught.

If the arguments are names, or beginnings of names, only those mutants are run. ``make mutants`` runs all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from collshim.conformance.mutants.declared import declared
from collshim.conformance.mutants.mechanical import mechanical
from collshim.conformance.mutants.mutant import Mutant, PatchError
from collshim.conformance.mutants.page import line, page, total
from collshim.conformance.mutants.runner import CAUGHT, SECONDS, Verdict, run_mutants
from collshim.conformance.reporting.files import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that the command line names; return the exit status."""
    asked = _parse(arguments)
    start = time.monotonic()
    try:
        mutants = _chosen(asked.names)
        if asked.list:
            print("\n".join(f"{mutant.name}: {mutant.fault}" for mutant in mutants))
            return 0
        verdicts = run_mutants(mutants, jobs=asked.jobs, seconds=asked.seconds, report=_print)
    except (PatchError, LookupError) as error:
        print(error, file=sys.stderr)
        return 2
    for verdict in verdicts:
        if verdict.outcome != CAUGHT:
            print(f"not caught: {line(verdict)}")
    print(total(verdicts))
    if asked.write is not None:
        write(asked.write, page(verdicts, (time.monotonic() - start) / 60))
    return 0 if all(verdict.outcome == CAUGHT for verdict in verdicts) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m collshim.conformance.mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="mutants, by the beginnings of their names (default: all)"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="mutants at once")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit of the suite on one mutant")
    parser.add_argument("--list", action="store_true", help="print the mutants' names and faults, and run none")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table to this page, docs/mutants.md")
    return parser.parse_args(arguments)


def _chosen(names: Sequence[str]) -> list[Mutant]:
    every: list[Mutant] = [*declared(), *mechanical()]
    unknown = [name for name in names if not any(mutant.name.startswith(name) for mutant in every)]
    if unknown:
        raise LookupError(f"no mutant's name begins with {', '.join(unknown)}; --list shows all")
    return [mutant for mutant in every if not names or mutant.name.startswith(tuple(names))]


def _print(verdict: Verdict) -> None:
    print(line(verdict), flush=True)


if __name__ == "__main__":
    sys.exit(main())
