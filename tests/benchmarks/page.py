"""The origin of the figures, in words, and the page that they are written into."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import collshim

BEGIN, END = "<!-- figures of make bench -->", "<!-- end of the figures of make bench -->"
"""The lines of the page that enclose the figures."""


def origin() -> list[str]:
    """Describe hardware, versions, and the load of the machine before the measurement."""
    busy = os.getloadavg()[0]
    system = f"{platform.system()} {platform.release()}, {_processor()}, {os.cpu_count()} cores"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, NumPy {np.__version__}"
    warned = "" if busy < 0.5 else " (not idle: figures of a busy machine say little)"
    return [
        f"{time.strftime('%Y-%m-%d')}: {system}; collshim {collshim.__version__}, {versions}; load average before the"
        f" run {busy:.1f}{warned}.",
        "",
    ]


def _processor() -> str:
    """Return the processor's name, which Linux shows only in a file."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def write(page: Path, lines: Sequence[str]) -> None:
    """Write the lines between the markers of the page.

    Raises:
        ValueError: the page has no markers.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for figures, should have the lines {BEGIN} and {END}")
    text = "\n".join(lines).strip()
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    print(f"written to {page}", file=sys.stderr)
