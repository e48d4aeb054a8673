"""docs/conformance.md: its commands, run in the folder of its examples, print the output that it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    \$ collshim (.+)\n\n?((?:^    (?!\$).*\n|^\n)*)", PAGE, re.MULTILINE)
SLOW = range(1, 6)
"""The slowest commands, by their position on the page."""


def test_page_has_commands_and_their_output() -> None:
    assert len(COMMANDS) == 7
    assert sum(bool(printed.strip()) for _, printed in COMMANDS) == 6


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        pytest.param(*command, id=str(number), marks=pytest.mark.slow if number in SLOW else ())
        for number, command in enumerate(COMMANDS)
    ],
)
def test_commands_print_what_the_page_shows(command: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "collshim", *shlex.split(command)],
        cwd=ROOT / "docs" / "examples",
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    expected = [line.removeprefix("    ") for line in printed.splitlines() if line.strip()]
    assert [line for line in expected if line not in done.stdout.splitlines()] == [], done.stdout + done.stderr
    assert done.returncode == ("toy_dist" in command or command.startswith("faults"))
