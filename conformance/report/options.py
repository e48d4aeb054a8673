"""The options of ``collshim conformance``, apart from what it needs to run."""

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

EPILOG = """A cell of the grid is a collective in a framework's dialect over a transport. It fails where an answer
differs from what is expected, or from what the real framework was recorded to answer, and no declared deviation says
so. Missing functions are listed and fail nothing. The exit code is 0 where all agrees, 1 where something differs, 2
where nothing could be asked, 130 after Ctrl-C, which shows and writes what was found till then."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    subjects = parser.add_argument_group("what is tested")
    _add_subjects(subjects)
    add_backend(subjects)
    _add_cases(parser.add_argument_group("what is asked"))
    files = parser.add_argument_group("files to write")
    files.add_argument("--json", type=Path, metavar="FILE", help="every case with its inputs and answers")
    files.add_argument("--html", type=Path, metavar="FILE", help="the grid as a page that needs no network")


def _add_subjects(group: argparse._ArgumentGroup) -> None:
    frameworks = f"{', '.join(known())} (default: all)"
    group.add_argument(
        "--framework", "--dialect", nargs="+", choices=known(), default=[], metavar="NAME", help=frameworks
    )
    group.add_argument(
        "--adapter",
        metavar="MODULE",
        help="somebody's module, in the place of the one framework's own; found in this folder too",
    )
    group.add_argument(
        "--allow-missing", action="store_true", help="ask a module that has none of the functions, or cannot start"
    )
    group.add_argument("--real", action="store_true", help="the one framework itself, apart from its declared faults")
    group.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="an interpreter that has it, for --real"
    )
    group.add_argument(
        "--xfails-file",
        type=Path,
        metavar="FILE",
        help="functions, or cases, that are known to fail, a line each",
    )
    group.add_argument("--skips-file", type=Path, metavar="FILE", help="the same of what is not to be asked")


def add_backend(group: argparse._ActionsContainer) -> None:
    """Add what names a backend of torch.distributed, here and in ``collshim faults``."""
    group.add_argument(
        "--backend",
        metavar="NAME",
        help="of torch.distributed, or of the module that --adapter names: gloo, collshim, one that --import registers",
    )
    group.add_argument(
        "--import", dest="registers", metavar="MODULE", help="what every rank imports first: what registers a backend"
    )


def _add_cases(group: argparse._ArgumentGroup) -> None:
    rows = (*COLLECTIVES, OTHER)
    row_help = f"{', '.join(rows)}; ring, ring_object: send and recv around the ranks"
    ranks = "threads, processes (default: both of collshim; processes of a module, unless it is over collshim's worlds)"
    group.add_argument("--transport", nargs="+", choices=TRANSPORTS, default=[], metavar="RANKS", help=ranks)
    group.add_argument("--collective", nargs="+", choices=rows, default=[], metavar="ROW", help=row_help)
    group.add_argument(
        "--size", nargs="+", type=_size, default=[], metavar="N", help="sizes of worlds (default: 1 2 3 4 8)"
    )
    kinds = f"{', '.join(KINDS)}: of arrays (default: all of collshim, torch of what is not)"
    group.add_argument("--kinds", nargs="+", choices=list(KINDS), default=[], metavar="KIND", help=kinds)
    group.add_argument("--case", metavar="CASE", help="one case alone, as a run prints it: [FUNCTION: ]Case(...)")
    group.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="for the ranks to answer a case, their start included"
    )


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no size of a world, should be 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait, should be a number of seconds, more than 0")
    return seconds
