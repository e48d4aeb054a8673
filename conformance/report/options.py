"""The options of ``collshim conformance``, in a module that does not import what the command needs to run."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from collshim.conformance.bindings.kinds import KINDS
from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.report.results import OTHER
from collshim.frameworks import known

EPILOG = """A cell of the grid is a collective in a framework's dialect over a transport. It fails if an answer differs
from the expected answer or the real framework's recorded answer, and the difference is not declared as a deviation.
Missing functions are listed, but do not count as failures. The exit code is 0 if all answers agree, 1 if one differs,
2 if no case could be run, and 130 after Ctrl-C, after which the results so far are shown and written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to ``parser``."""
    subjects = parser.add_argument_group("subject")
    _add_subjects(subjects)
    add_backend(subjects)
    _add_cases(parser.add_argument_group("cases"))
    _add_results(parser.add_argument_group("results"))
    files = parser.add_argument_group("files to write")
    files.add_argument("--json", type=Path, metavar="FILE", help="write every case with its inputs and answers to FILE")
    files.add_argument(
        "--html", type=Path, metavar="FILE", help="write the grid to FILE, as a page that needs no network"
    )


def _add_subjects(group: argparse._ArgumentGroup) -> None:
    frameworks = f"{', '.join(known())} (default: all)"
    group.add_argument(
        "--framework", "--dialect", nargs="+", choices=known(), default=[], metavar="NAME", help=frameworks
    )
    group.add_argument(
        "--adapter",
        metavar="MODULE",
        help="test your own module against the one --framework; the current folder is searched too",
    )
    group.add_argument(
        "--allow-missing",
        action="store_true",
        help="accept a module without any of the functions, or that cannot start ranks",
    )
    group.add_argument(
        "--real", action="store_true", help="test the real --framework itself, except for its declared faults"
    )
    group.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="with --real, a Python that has the framework"
    )
    group.add_argument(
        "--xfails-file", type=Path, metavar="FILE", help="functions or cases known to fail, one per line"
    )
    group.add_argument("--skips-file", type=Path, metavar="FILE", help="functions or cases to skip, one per line")


def add_backend(group: argparse._ActionsContainer) -> None:
    """Add the options for a backend of torch.distributed; ``collshim faults`` has them too."""
    group.add_argument(
        "--backend",
        metavar="NAME",
        help="backend of torch.distributed, or of the --adapter module: gloo, collshim, or one that --import registers",
    )
    group.add_argument(
        "--import",
        dest="registers",
        metavar="MODULE",
        help="a module that every rank imports first, to register a backend",
    )


def _add_cases(group: argparse._ArgumentGroup) -> None:
    rows = (*COLLECTIVES, OTHER)
    row_help = f"{', '.join(rows)}; ring, ring_object: send and recv around the ranks"
    ranks = (
        "threads, processes (default: both for collshim; processes for your module, unless it uses collshim's worlds)"
    )
    group.add_argument("--transport", nargs="+", choices=TRANSPORTS, default=[], metavar="RANKS", help=ranks)
    group.add_argument("--collective", nargs="+", choices=rows, default=[], metavar="ROW", help=row_help)
    group.add_argument(
        "--size", nargs="+", type=_size, default=[], metavar="N", help="sizes of the worlds (default: 1 2 3 4 8)"
    )
    kinds = f"kinds of arrays: {', '.join(KINDS)} (default: all for collshim, torch for other modules)"
    group.add_argument("--kinds", nargs="+", choices=list(KINDS), default=[], metavar="KIND", help=kinds)
    group.add_argument(
        "--case", metavar="CASE", help="run only this case, written as a run prints it: [FUNCTION: ]Case(...)"
    )
    group.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="how long the ranks may take to start, and to answer a case"
    )


def _add_results(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--show",
        choices=("functions", "cases"),
        default="functions",
        help="show, below the grid, an example of each failed function and the causes (default), or also all cases",
    )
    group.add_argument(
        "--read", type=Path, metavar="FILE", help="run nothing; show the results from a file that --json wrote"
    )
    group.add_argument(
        "--diff",
        type=Path,
        nargs=2,
        metavar=("OLD", "NEW"),
        help="run nothing; compare two files that --json wrote; the exit code is 1 if something is worse in NEW, "
        "2 if a file cannot be read; --json writes the comparison",
    )


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"the size of a world is {text}, should be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"the timeout is {text}, should be a number of seconds above 0")
    return seconds
