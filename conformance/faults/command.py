"""``collshim faults``: score collshim, torch for comparison, or another module or backend.

If programs are named, only those are run. The exit code is 1 if the subject misses a class of faults, fails a twin or
loses a rank to a signal; torch's own ways of running, which serve as a comparison, do not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from collshim import ArgumentError, ArgumentValueError
from collshim.conformance.faults.job import NotStartedError
from collshim.conformance.faults.page import merge, page
from collshim.conformance.faults.program import Program, programs
from collshim.conformance.faults.rank import FACES, face_of
from collshim.conformance.faults.report import record, show
from collshim.conformance.faults.scorer import Result, reached, score
from collshim.conformance.report import readiness
from collshim.conformance.reporting.files import write, write_json
from collshim.conformance.subject import over


def start(options: argparse.Namespace) -> int:
    """Run the programs; return the exit code."""
    programs_by_name = {program.name: program for program in programs()}
    unknown = [name for name in options.names if name not in programs_by_name]
    if unknown:
        raise ArgumentValueError(f"no such program: {', '.join(unknown)}; there are {', '.join(programs_by_name)}")
    selection = [
        program for program in programs_by_name.values() if program.name in (options.names or programs_by_name)
    ]
    faces = _faces(options)
    try:
        results = _score(selection, faces, options.jobs)
    except NotStartedError as error:
        first, *_, last = str(error).strip().splitlines()
        raise ArgumentError(f"no program can be run: {first} {last}") from error
    if options.texts:
        _print_texts(results)
    show(results, faces)
    if options.json is not None:
        write_json(options.json, list(map(record, results)))
    if options.write is not None:
        before = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        write(options.write, merge(page(results, faces), before))
    return 0 if reached(results, faces) else 1


def _faces(options: argparse.Namespace) -> Sequence[str]:
    """Return the ways of running the programs: those that are named, and the module's or the backend's."""
    if not (options.adapter or options.backend):
        if options.registers:
            raise ArgumentError(f"--import is {options.registers}, but there is no --backend for it to register")
        return options.faces or list(FACES)
    subject = over(options.backend or "gloo", options.adapter, options.registers)
    readiness.find_modules_here()
    readiness.require(subject, subject.bindings())
    return [*(options.faces or ()), face_of(subject.module, subject.backend, options.registers or "")]


def _score(selection: Sequence[Program], faces: Sequence[str], jobs: int) -> list[Result]:
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
