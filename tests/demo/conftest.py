"""The command line as users start it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Demo = Callable[..., "subprocess.CompletedProcess[str]"]

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 110


@pytest.fixture(scope="session")
def demo() -> Demo:
    """Return a function that runs ``python -m collshim demo``, which draws into ``picture``, to its end."""

    def run(picture: Path, *options: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "collshim", "demo", "--picture", str(picture), *options]
        return subprocess.run(
            line, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=DEADLINE, check=False
        )

    return run
