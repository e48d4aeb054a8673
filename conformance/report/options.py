"""The options of ``collshim conformance``, apart from what it needs to run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from collshim.conformance.bindings import FRAMEWORKS
from collshim.conformance.cases import COLLECTIVES
from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.report.results import OTHER

EPILOG = """A cell of the grid is a collective in a framework's dialect over a transport. It fails where an answer
differs from what is expected, or from what the real framework was recorded to answer, and no declared deviation says
so; then the exit code is 1. Missing functions are listed and fail nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    cases, files = parser.add_argument_group("what is run"), parser.add_argument_group("files to write")
    rows, frameworks = (*COLLECTIVES, OTHER), f"{', '.join(FRAMEWORKS)} (default: all)"
    cases.add_argument("--framework", nargs="+", choices=FRAMEWORKS, default=[], metavar="NAME", help=frameworks)
    cases.add_argument(
        "--transport", nargs="+", choices=TRANSPORTS, default=[], metavar="RANKS", help="threads, processes"
    )
    cases.add_argument("--collective", nargs="+", choices=rows, default=[], metavar="ROW", help=f"{', '.join(rows)}")
    cases.add_argument(
        "--size", nargs="+", type=int, default=[], metavar="N", help="sizes of worlds (default: 1 2 3 4 8)"
    )
    cases.add_argument("--adapter", metavar="MODULE", help="somebody's module, in the place of the one framework's own")
    cases.add_argument("--real", action="store_true", help="the one framework itself, apart from its declared faults")
    cases.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="an interpreter that has it, for --real"
    )
    files.add_argument("--json", type=Path, metavar="FILE", help="every case with its inputs and answers")
    files.add_argument("--html", type=Path, metavar="FILE", help="the grid as a page that needs no network")
