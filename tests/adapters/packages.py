"""Unmodified packages from PyPI that tests run on a stand-in, and the scripts that do so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_SECONDS = 90


def install(folder: Path, pins: Sequence[str], *options: str, constraint: str = "") -> Path:
    """Install packages in a folder and return it; skip the test if pip cannot get them.

    Args:
        folder: the target.
        pins: the requirements for pip.
        options: for pip; without "--no-deps" the dependencies are installed too.
        constraint: for the packages' build requirements.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", str(folder), *pins]
    environment = dict(os.environ)
    if constraint:
        (folder / "constraints.txt").write_text(constraint, encoding="utf-8")
        for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"):  # the second is that of pip 25.3 and later
            environment[name] = str(folder / "constraints.txt")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not get {', '.join(pins)} within {_SECONDS} s")
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error"))]
        pytest.skip(f"pip cannot get {', '.join(pins)}: {' '.join(told[-1:])}")
    return folder


def run_for_json(script: str, *arguments: str) -> Any:
    """Run a script and parse the last line that it printed as JSON."""
    return json.loads(run_python("-c", script, *arguments).splitlines()[-1])


def run_python(*command: str) -> str:
    """Run Python with these arguments and return its output; it must succeed."""
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
