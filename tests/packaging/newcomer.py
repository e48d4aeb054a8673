"""``python -m tests.packaging.newcomer``: a newcomer's try, with nothing but the wheel, README.md and docs/.

Builds the wheel. For each Python makes a fresh environment, installs the wheel with its extras, and runs the programs
of the pages there, outside the checkout; then the self-test, and the demo. Exits with 1 if something fails, and with 77
if a Python is missing or pip cannot install what the wheel needs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.environments import ROOT, SKIPPED

PYTHONS = ("3.10", "3.13")
EXTRAS = "check,cli,examples,keras,notebooks"
BESIDE = ("pytest", "pytest-timeout", "nbclient", "ipykernel")
PAGES = ("README.md", "docs")
PROGRAMS = (
    "test_code_blocks",
    "test_conformance_page",
    "test_invariance_page",
    "test_launching_examples",
    "test_notebook",
    "test_oneflow_examples",
    "test_ports",
    "test_readme",
    "test_tensorflow_examples",
)
"""The tests of tests/docs that run programs of the pages."""

HELPERS = ("tests/robustness/scripts.py",)


def main() -> int:
    """Try each Python; return the exit code."""
    parser = argparse.ArgumentParser(prog="newcomer", description=__doc__)
    parser.add_argument("pythons", nargs="*", default=PYTHONS, help="versions; PYTHON310 names a path of 3.10")
    parser.add_argument("--torch", default="torch", help="torch as pip is to install it, such as torch==2.13.0")
    chosen = parser.parse_args()
    codes = [_try(version, chosen.torch) for version in chosen.pythons]
    return next((code for code in codes if code not in (0, SKIPPED)), max(codes))


def _try(version: str, torch: str) -> int:
    variable = f"PYTHON{version.replace('.', '')}"
    python = os.environ.get(variable) or shutil.which(f"python{version}")
    if python is None:
        print(f"newcomer: SKIPPED, python{version} was not found: set {variable}", flush=True)
        return SKIPPED
    with TemporaryDirectory(prefix="collshim-newcomer-") as folder:
        print(f"newcomer: Python {version}", flush=True)
        own, wheel = Path(folder) / "environment" / "bin" / "python", _wheel(python, Path(folder))
        if wheel is None:
            return 1
        install = [str(own), "-m", "pip", "install", "--quiet", torch, f"{wheel}[{EXTRAS}]", *BESIDE]
        if _run(install, Path(folder)):
            return SKIPPED
        outside = _pages(Path(folder) / "outside")
        commands = (
            ["-c", f"import collshim, sys; sys.exit(collshim.__file__.startswith({str(ROOT)!r}))"],
            ["-m", "pytest", "-q", "--timeout=300", "-W", "ignore::pytest.PytestUnknownMarkWarning", "tests/docs"],
            ["-m", "collshim", "test"],
            ["-m", "collshim", "demo", "--picture", "demo.svg"],
        )
        codes = [_run([str(own), *command], outside) for command in commands]
        return int(any(codes))  # a code is negative if a signal ended the command


def _wheel(python: str, folder: Path) -> Path | None:
    """Make an environment, and build the wheel with it; return the wheel, or None if that fails."""
    own, wheels = folder / "environment", folder / "wheels"
    steps = [
        [python, "-m", "venv", str(own)],
        [str(own / "bin" / "python"), "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(wheels), str(ROOT)],
    ]
    return None if any(_run(step, folder) for step in steps) else next(wheels.glob("*.whl"))


def _pages(outside: Path) -> Path:
    """Copy the pages, and the tests that run their programs."""
    outside.mkdir()
    shutil.copy(ROOT / PAGES[0], outside)
    shutil.copytree(ROOT / PAGES[1], outside / PAGES[1], ignore=shutil.ignore_patterns("__pycache__"))
    for name in (*HELPERS, *(f"tests/docs/{name}.py" for name in PROGRAMS)):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, outside / name)
    return outside


def _run(command: list[str], folder: Path) -> int:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("COLLSHIM_", "PYTHON"))}
    done = subprocess.run(command, cwd=folder, env=own, check=False)
    if done.returncode:
        print(f"newcomer: exit code {done.returncode} of {' '.join(command)}", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
