"""The pages of docs/ that are made from code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_generated_page_is_stale() -> None:
    found = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stdout) == (0, "")
