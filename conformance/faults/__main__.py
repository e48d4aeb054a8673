"""``python -m collshim.conformance.faults``: score collshim, and torch beside it; exits with 1 where collshim misses.

With names of programs, those alone. ``make faults`` runs all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from collshim.conformance.faults.page import merged, page
from collshim.conformance.faults.program import Program, programs
from collshim.conformance.faults.rank import FACES
from collshim.conformance.faults.report import record, show
from collshim.conformance.faults.scorer import Result, reached, score


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit status."""
    options = _parsed(arguments)
    programs_by_name = {program.name: program for program in programs()}
    unknown = [name for name in options.names if name not in programs_by_name]
    if unknown:
        print(f"no such program: {', '.join(unknown)}; there are {', '.join(programs_by_name)}", file=sys.stderr)
        return 2
    selection = [
        program for program in programs_by_name.values() if program.name in (options.names or programs_by_name)
    ]
    results = _scored(selection, options.faces, options.jobs)
    if options.texts:
        _print_texts(results)
    show(results, options.faces)
    if options.json is not None:
        options.json.write_text(json.dumps(list(map(record, results)), indent=1), encoding="utf-8")
    if options.write is not None:
        before = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        options.write.write_text(merged(page(results, options.faces), before), encoding="utf-8")
        print(f"written: {options.write}")
    return 0 if reached(results, options.faces) else 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m collshim.conformance.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all by default")
    parser.add_argument("--faces", nargs="+", choices=FACES, default=list(FACES), help="ways of running them")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 1), help="programs at once")
    parser.add_argument("--texts", action="store_true", help="print every rank's error")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what came of every program to this file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables to this page, docs/faults.md")
    return parser.parse_args(arguments)


def _scored(selection: Sequence[Program], faces: Sequence[str], jobs: int) -> list[Result]:
    total = sum(program.runs_on(face) for program in selection for face in faces)
    count = 0

    def report(result: Result) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            print(f"\r{count} of {total} \x1b[K{result.program.name}, {result.face}", end="\r", file=sys.stderr)

    results = score(selection, faces, jobs=jobs, report=report)
    if sys.stderr.isatty():
        print("\x1b[K", end="", file=sys.stderr)
    return results


def _print_texts(results: Sequence[Result]) -> None:
    for result in results:
        print(f"{result.program.name}, {result.face}: {result.program.summary}")
        for rank, text in sorted(result.score.texts.items()):
            indented_text = text.replace("\n", "\n    ")
            print(f"  rank {rank}: {indented_text}")
        print()


if __name__ == "__main__":
    sys.exit(main())
