"""The command ``collshim log``."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from collshim.errors import ArgumentValueError

_WIDTH = 120
"""The number of columns if the output is not a terminal."""

EPILOG = """\
DIR is the folder COLLSHIM_LOG_DIR of a program that has run or is running. The last run is shown unless --run names
another. A run is one world, so a program that launches ranks three times has three runs.
A call that no wait has finished is "waiting" if it is the rank's last call, and "posted" if the rank made a later one.
Exit codes: 0 all calls are done and the ranks agree, 1 a call is not done or the ranks disagree, 2 no logs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder with the ranks' files")
    parser.add_argument("--run", dest="number", type=int, metavar="N", help="the N-th run, from 1 (default: the last)")
    parser.add_argument("--all", action="store_true", help="show all calls of all groups, not the last 20 of each")
    parser.add_argument("--json", action="store_true", help="print all calls of the run as JSON")


def start(chosen: argparse.Namespace) -> int:
    """Run the command, and return its exit code."""
    from rich.console import Console

    from collshim.logs.reading import read
    from collshim.logs.text import LAST, as_json, show
    from collshim.logs.verdict import Verdict

    runs = read(chosen.folder)
    verdict = Verdict(runs, len(runs) if chosen.number is None else chosen.number)
    if chosen.json:
        print(as_json(verdict))
    else:
        show(verdict, Console(width=None if sys.stdout.isatty() else _WIDTH), None if chosen.all else LAST)
    return verdict.code


def show_after_failure(folder: Path, since: float) -> None:
    """Print the last calls of the folder's last run to standard error, if ``rich`` is installed.

    A run that began before ``since``, in seconds since 1970, is not shown.
    """
    if find_spec("rich") is None:
        return
    from rich.console import Console

    from collshim.logs.reading import read
    from collshim.logs.text import show
    from collshim.logs.verdict import Verdict

    try:
        runs = read(folder)
    except ArgumentValueError:  # no rank came as far as its world
        return
    if runs[-1].start >= since:
        print(file=sys.stderr)
        show(Verdict(runs, len(runs)), Console(stderr=True, width=None if sys.stderr.isatty() else _WIDTH))
