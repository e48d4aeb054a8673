"""Run the tests over the real MegEngine, in an environment of their own.

python -m tests.over_real makes ``.venv-over-megengine``, with Python 3.10 (``python3.10``, or PYTHON310 says which),
MegEngine 1.13.0, what that needs, and torch. The exit status is pytest's, or 77 where the environment cannot be made,
with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
"""The exit status where nothing was run, as Automake has it."""

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-over-megengine"
PINS = ("setuptools<75", "numpy==1.23.5", "megengine==1.13.0", "torch>=2.6", "optree", "pytest", "pytest-timeout")


class CannotBeMadeError(Exception):
    """The environment cannot be made here."""


def make() -> Path:
    """The environment's Python; made where it is missing."""
    python, done = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "done"
    if done.exists():
        return python
    own = os.environ.get("PYTHON310") or shutil.which("python3.10")
    if own is None:
        raise CannotBeMadeError("there is no python3.10, for which MegEngine 1.13.0 is built: PYTHON310 says where")
    _run([own, "-m", "venv", "--clear", str(ENVIRONMENT)])
    _run([str(python), "-m", "pip", "install", "--quiet", *PINS])
    done.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()
        raise CannotBeMadeError(f"{' '.join(command[:4])}: {' '.join(told[-1:])}")


def main() -> int:
    """Make what is missing, and run."""
    try:
        python = make()
    except (CannotBeMadeError, subprocess.TimeoutExpired) as error:
        print(f"over-real: SKIPPED, no test was run: {error}", flush=True)
        return SKIPPED
    options = [
        "--quiet",
        "--noconftest",
        "-c",
        os.devnull,
        f"--rootdir={ROOT}",
        "--timeout=100",
        "-p",
        "no:cacheprovider",
    ]
    command = [str(python), "-m", "pytest", *options, str(Path(__file__).parent / "over_megengine.py"), *sys.argv[1:]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
