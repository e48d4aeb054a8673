"""``python -m tests.upstream.programs``: other people's programs, over gloo and over collshim in turn.

Runs every program of ``programs.toml`` on 2 and on 4 ranks in an environment of its own, ``.venv-upstream-programs``:
over gloo, over the backend collshim, and on 2 ranks with `collshim run --as torch`. Compares exit statuses and figures.
Prints a table, and exits with 1 if a result differs from ``expected.toml``. Exits with 77, and prints the reason, if
the environment cannot be made.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from tests.environments import SKIPPED, CannotBeMadeError
from tests.upstream.programs import page
from tests.upstream.programs.comparing import classify, difference, is_to_pass_over_gloo, outcome, unknown
from tests.upstream.programs.listing import Column, Program, make_environment, programs
from tests.upstream.programs.running import RunResult, run

_TRIES = 3
"""How often a program is run over gloo if it fails: a process may abort at its end, or hang after a restart."""


def main() -> int:
    """Run the command line's request; return the exit code."""
    asked = _parser().parse_args()
    try:
        python = make_environment()
    except CannotBeMadeError as error:
        print(f"upstream-programs: SKIPPED, no program was run: {error}", flush=True)
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the ranks of the current program are ended too
    chosen = [program for program in programs() if not asked.programs or program.name in asked.programs]
    outcomes = page.load(asked.keep) if asked.keep else {}
    wrong = unknown(programs())
    for program in chosen:
        for column in program.columns:
            if column.ranks in asked.ranks:
                outcomes[program.name, column.title], told = _compare(python, program, column, asked.output)
                wrong += told
                if asked.keep:
                    page.save(asked.keep, outcomes)
    print(page.table(outcomes))
    if asked.write:
        page.write(outcomes)
    print("\n".join(wrong), flush=True)
    return int(bool(wrong))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="upstream-programs", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--write", action="store_true", help="write the table into docs/torch-programs.md")
    parser.add_argument("--keep", type=Path, help="a file of outcomes that this run adds to")
    parser.add_argument("--output", type=Path, help="a folder for what each program prints")
    parser.add_argument("programs", nargs="*", help="names of programs, by default all")
    return parser


def _compare(python: Path, program: Program, column: Column, output: Path | None) -> tuple[str, list[str]]:
    """Run the program over both; return the outcome, and how it differs from the expected one."""
    gloo = _over_gloo(python, program, column)
    if column.stands_in:
        collshim = run(python, program, "gloo", column.ranks, stands_in=True)
    else:
        collshim = run(python, program, "collshim", column.ranks)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for backend, ran in {"gloo": gloo, "collshim": collshim}.items():
            (output / f"{program.name}, {column.title}, {backend}.log").write_text(ran.output, encoding="utf-8")
    found = classify(program, column, outcome(gloo, collshim), collshim)
    print(f"{program.name}, {column.title}: {found} ({gloo.seconds:.1f} and {collshim.seconds:.1f} s)", flush=True)
    told = difference(program, column, found, gloo, collshim)
    return found, [told] if told else []


_gloos: dict[tuple[Program, int], RunResult] = {}
"""The runs over gloo, with which two columns are compared."""


def _over_gloo(python: Path, program: Program, column: Column) -> RunResult:
    """Run the program over gloo, several times if it should pass; return the last run, or an earlier one of as many."""
    key = program, column.ranks
    for _ in range(_TRIES):
        if key in _gloos and (_gloos[key].passed or not is_to_pass_over_gloo(program, column)):
            break
        _gloos[key] = run(python, program, "gloo", column.ranks)
    return _gloos[key]


if __name__ == "__main__":
    sys.exit(main())
