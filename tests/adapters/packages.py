"""Packages of PyPI, unmodified, which tests run on a stand-in, and the scripts that do so."""

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


def installed(folder: Path, pins: Sequence[str], *options: str, constraint: str = "") -> Path:
    """The folder, with the packages in it; the test is skipped where pip cannot have them.

    Args:
        folder: where they are put.
        pins: what pip is asked for.
        options: of pip: without "--no-deps" what they need comes with them.
        constraint: on what builds them.
    """
    command = [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", str(folder), *pins]
    environment = dict(os.environ)
    if constraint:
        (folder / "constraints.txt").write_text(constraint, encoding="utf-8")
        environment["PIP_CONSTRAINT"] = str(folder / "constraints.txt")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not have {', '.join(pins)} within {_SECONDS} s")
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "error"))]
        pytest.skip(f"pip cannot have {', '.join(pins)}: {' '.join(told[-1:])}")
    return folder


def told_by(script: str, *arguments: str) -> Any:
    """What a script printed last, as JSON."""
    return json.loads(printed_by("-c", script, *arguments).splitlines()[-1])


def printed_by(*command: str) -> str:
    """What Python printed with these arguments, which ended well."""
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
