"""Put small faults of ``mutants.toml``, one at a time, into copies of the package, and check that tests find them.

python -m tests.cuda_model.mutants            all of them
python -m tests.cuda_model.mutants stream     those with the word in their names

The exit status is 1 if one survives, 77 if the environment cannot be made.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from collshim.conformance.mutants import tree
from collshim.conformance.mutants.declared import Patch
from tests.cuda_model.__main__ import surroundings
from tests.cuda_model.environment import make, python
from tests.environments import ROOT, SKIPPED, CannotBeMadeError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = "tests/cuda_model"
SECONDS = 240
"""The limit of the tests on one mutant; a longer hang counts as found."""

FAILED = 1
"""pytest's exit status if a test failed."""


class Outcome(NamedTuple):
    """The outcome of the tests on a mutant: whether one found it, pytest's last line, and the seconds."""

    found: bool
    told: str
    seconds: float


def declared() -> Iterator[tuple[Patch, list[str]]]:
    """Yield every mutant with the tests that must find it."""
    entries: list[dict[str, Any]] = tomllib.loads((ROOT / FOLDER / "mutants.toml").read_text("utf-8"))["mutant"]
    for entry in entries:
        tests = [os.path.normpath(f"{FOLDER}/{name}") for name in entry.pop("tests")]
        yield Patch(layer="transports", **entry), tests


def main(words: list[str]) -> int:
    """Try the selected mutants, and print the outcome of each."""
    try:
        make()
    except CannotBeMadeError as error:
        print(f"mutants of the code for GPUs: SKIPPED, none was tried: {error}", flush=True)
        return SKIPPED
    survivors = []
    with TemporaryDirectory(prefix="collshim-mutants-") as folder:
        baseline = tree.copy(Path(folder) / "baseline")
        for name in ("tests", "conftest.py", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, baseline / name)
        for patch, tests in declared():
            if not words or any(word in patch.name for word in words):
                with TemporaryDirectory(dir=folder) as own:
                    outcome = _try(tree.mutate(baseline, Path(own), patch), tests)
                word = "caught  " if outcome.found else "SURVIVED"
                print(f"{word} {outcome.seconds:4.0f} s  {patch.name}: {outcome.told}", flush=True)
                survivors += [] if outcome.found else [patch.name]
    print(f"{len(survivors)} survived{': ' if survivors else ''}{', '.join(survivors)}")
    return 1 if survivors else 0


def _try(folder: Path, tests: list[str]) -> Outcome:
    options = ["-p", "tests.cuda_model.plugin", "--quiet", "--exitfirst", "-p", "no:cacheprovider", "--timeout=60"]
    command = [str(python()), "-m", "pytest", *options, *tests]
    began = time.monotonic()
    try:
        told = subprocess.run(
            command, cwd=folder, env=surroundings(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(True, f"nothing was told within {SECONDS} s", time.monotonic() - began)
    lines = told.stdout.splitlines()
    line = next((line for line in lines if line.startswith(("FAILED ", "ERROR tests"))), lines[-1] if lines else "")
    ended = told.returncode < 0  # by a signal, like a process ended by NCCL's watchdog
    return Outcome(told.returncode == FAILED or ended, line or told.stderr[-200:], time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
