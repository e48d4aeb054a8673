"""Environments of their own for tests of packages that are not installed beside collshim."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SKIPPED = 77
"""The exit status if nothing was run, as in Automake."""

ROOT = Path(__file__).resolve().parents[1]


class CannotBeMadeError(Exception):
    """The environment cannot be made here."""


def make(name: str, version: str, *installs: Sequence[str]) -> Path:
    """Return the Python of ``.venv-NAME``; make it if missing, or if it was made with other packages.

    ``version`` is Python's, as in ``3.10``; the variable PYTHON310 names another path of it. Each of ``installs`` has
    the arguments of one ``pip install``.
    """
    folder = ROOT / f".venv-{name}"
    python, done = folder / "bin" / "python", folder / "done"
    packages = "\n".join(" ".join(arguments) for arguments in installs)
    if done.exists() and done.read_text(encoding="utf-8") in ("", packages):
        return python
    variable = f"PYTHON{version.replace('.', '')}"
    own = os.environ.get(variable) or shutil.which(f"python{version}")
    if own is None:
        raise CannotBeMadeError(f"python{version}, which {name} needs, was not found: set {variable}")
    _run([own, "-m", "venv", "--clear", str(folder)])
    for arguments in installs:
        _run([str(python), "-m", "pip", "install", "--quiet", *arguments])
    done.write_text(packages, encoding="utf-8")
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    except subprocess.TimeoutExpired as error:
        raise CannotBeMadeError(str(error)) from error
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()
        raise CannotBeMadeError(f"{' '.join(command[:4])}: {' '.join(told[-1:])}")
