"""The command ``collshim invariance``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_STDOUT, _STDERR = 1, 2
_CANNOT_START = 2

EPILOG = """\
TARGET is module:function, path.py:function, or the path of a script. The function receives the global batch: the
module's "batch", or its result if it is a function. The function takes this rank's part of the batch, runs the backward
pass, and returns the loss and the model. A script runs until each of its optimizers has made a step.
Exit codes: 0 the same, 1 different, 2 cannot start, 3 cannot be judged.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("target", metavar="TARGET", help="the step or script to run")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="arguments for a script, after --")
    parser.add_argument("--against", metavar="TARGET", help="compare with this program instead of with one rank")
    parser.add_argument(
        "--ranks",
        type=_numbers,
        default=None,
        metavar="N,N",
        help="numbers of ranks (default: 1,2,4; 1,2 with --against)",
    )
    parser.add_argument(
        "--mesh", type=_mesh, default={}, metavar="NAME=N,NAME=N", help="how the ranks are arranged, such as dp=2,tp=2"
    )
    parser.add_argument(
        "--batch", default="", metavar="NAME", help="name of the global batch in the module (default: batch)"
    )
    kinds = "the kind of ranks (default: threads, then processes if the results differ; scripts: processes)"
    parser.add_argument("--as", dest="kind", choices=("auto", "threads", "processes"), default="auto", help=kinds)
    parser.add_argument("--seed", type=int, default=0, help="the seed of every rank (default: %(default)s)")
    parser.add_argument("--keep-dropout", action="store_true", help="leave dropout on")
    parser.add_argument(
        "--steps", type=int, default=1, metavar="N", help="steps of each optimizer in a script (default: 1)"
    )
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="S", help="seconds that one run may take (default: 120)"
    )
    parser.add_argument("--all", action="store_true", help="show every parameter")
    parser.add_argument("--json", action="store_true", help="print only JSON")


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} should be numbers from 1, such as 1,2,4")
    return numbers


def _mesh(text: str) -> dict[str, int]:
    axes = dict[str, int]()
    for part in text.split(","):
        name, _, number = part.partition("=")
        if not name or not number.isdigit() or int(number) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} should be names with numbers, such as dp=2,tp=2")
        axes[name] = int(number)
    return axes


def start(chosen: argparse.Namespace) -> int:
    """Run the command, and return its exit code."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    with _output_to_stderr():
        show, code = _checked(chosen, console)
    show()
    return code


@contextmanager
def _output_to_stderr() -> Iterator[None]:
    """Send to standard error what the program writes to standard output, also outside Python and in other processes."""
    sys.stdout.flush()
    own = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(own, _STDOUT)
        os.close(own)


def _checked(chosen: argparse.Namespace, console: Console) -> tuple[Callable[[], object], int]:
    """Run the program, and return a function that shows the result, and the exit code."""
    from collshim.errors import RankError
    from collshim.invariance import against, table
    from collshim.invariance.check import check
    from collshim.invariance.program import Program, Switches

    switches = Switches(chosen.seed, chosen.keep_dropout, chosen.kind, chosen.steps, chosen.timeout)
    program = Program.found(chosen.target, chosen.batch, chosen.arguments, chosen.seed)
    progress = _silent if chosen.json else _progress
    if chosen.against:
        other = Program.found(chosen.against, chosen.batch, chosen.arguments, chosen.seed)
        difference = against.compare_programs(other, program, _sizes(chosen.ranks, (1, 2)), switches, progress)
        if chosen.json:
            return partial(print, against.as_json(difference)), difference.code
        return partial(against.show, difference, console, everything=chosen.all), difference.code
    try:
        report = check(program, _sizes(chosen.ranks, (1, 2, 4)), chosen.mesh, switches, progress)
    except RankError as error:
        verdict = f"{chosen.target} fails on 1 rank: {error}"
        facts = {"target": chosen.target, "verdict": verdict, "code": _CANNOT_START}
        return partial(print, json.dumps(facts) if chosen.json else verdict), _CANNOT_START
    if chosen.json:
        return partial(print, table.as_json(report)), report.code
    return partial(table.show, report, console, everything=chosen.all), report.code


def _sizes(chosen: Sequence[int] | None, default: Sequence[int]) -> Sequence[int]:
    return default if chosen is None else chosen


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    """Say nothing."""
