"""The command ``collshim check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EPILOG = """\
The check reads a script and the modules next to it that it imports, or all Python files of a folder. It runs no code.
A comment `# collshim: ignore[RULE]` on a line silences that rule there.
Exit codes: 0 no missing names and no mistakes, 1 missing names or mistakes, 2 cannot start.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scripts", metavar="SCRIPT", nargs="+", type=Path, help="a script, or a folder")
    parser.add_argument(
        "--as", dest="framework", default="", metavar="FRAMEWORK", help="list only this framework's names"
    )
    parser.add_argument("--all", action="store_true", help="also list the lines of supported names")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0, for code hosts")


def start(chosen: argparse.Namespace) -> int:
    """Run the command, and return its exit code."""
    from rich.console import Console

    from collshim.checking.report import check
    from collshim.checking.sarif import as_sarif
    from collshim.checking.text import as_json, show

    report = check(chosen.scripts, chosen.framework)
    if chosen.json:
        print(as_json(report))
    elif chosen.sarif:
        print(as_sarif(report))
    else:
        show(report, Console(width=None if sys.stdout.isatty() else 120), everything=chosen.all)
    return report.code
