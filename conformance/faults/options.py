"""The options of ``collshim faults``, in a module that does not import what the command needs to run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from collshim.conformance.faults.rank import FACES
from collshim.conformance.report.options import add_backend


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to run (default: all)")
    parser.add_argument(
        "--faces", nargs="+", choices=FACES, metavar="FACE", help=f"how to run the programs: {', '.join(FACES)}"
    )
    parser.add_argument(
        "--adapter",
        metavar="MODULE",
        help="a module with torch.distributed's functions; the current folder is searched too",
    )
    add_backend(parser)
    parser.add_argument(
        "--jobs", type=int, default=max(2, os.cpu_count() or 1), help="how many programs to run at once"
    )
    parser.add_argument("--texts", action="store_true", help="print every rank's error")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result of every program to this file")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="write the tables to this page, such as docs/faults.md"
    )
