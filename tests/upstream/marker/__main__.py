"""``python -m tests.upstream.marker``: other projects' suites on the marker ``ranks``, with their harness taken out.

Prints each suite's counts. Exits with 1 if one differs from ``suites.toml``, with 77 if nothing could be downloaded.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.environments import ROOT, SKIPPED, CannotBeMadeError, make

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
TORCH = ("torch==2.13.0", "--constraint", str(ROOT / "constraints.txt"))
BESIDE = ("pytest", "pytest-timeout", "pytest-xdist", "scikit-learn", "pytest-order")
SECONDS = 900

Suite = dict[str, Any]


def main() -> int:
    """Run the suites that the command line names, by default all; return the exit code."""
    parser = argparse.ArgumentParser(prog="upstream-marker", description=__doc__)
    parser.add_argument("suites", nargs="*", help="names of suites")
    parser.add_argument("--show", action="store_true", help="print pytest's output of suites that pass, too")
    asked = parser.parse_args()
    suites = tomllib.loads((HERE / "suites.toml").read_text(encoding="utf-8"))
    try:
        python = make("upstream-marker", "3.11", TORCH, BESIDE, *(suite["installs"] for suite in suites.values()))
        return max([_run(name, suites[name], python, show=asked.show) for name in asked.suites or suites])
    except CannotBeMadeError as error:
        print(f"upstream-marker: SKIPPED: {error}", flush=True)
        return SKIPPED


def _run(name: str, suite: Suite, python: Path, *, show: bool) -> int:
    """Run a suite in a folder of its own; return 1 if it does not pass as expected."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        _lay_out(suite, python, Path(folder))
        command = [str(python), "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        command += ["-p", "collshim_pytest", "-W", "ignore", "--timeout=120", "-k", suite.get("chosen", "")]
        command += [f"--deselect={test}" for test in suite.get("deselected", ())]
        own = {"PYTHONPATH": str(ROOT), "TMPDIR": folder}
        done = subprocess.run(
            [*command, *suite["tests"]],
            cwd=folder,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    counts = {
        kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|errors?|skipped)", done.stdout[-400:])
    }
    is_right = counts == {kind: suite[kind] for kind in ("passed", "skipped") if kind in suite}
    print(f"{name}: {counts}, {time.monotonic() - began:.0f} s; taken out: {suite['taken_out']}", flush=True)
    if show or not is_right:
        print(f"expected: {suite['passed']} passed\n{done.stdout[-12_000:]}{done.stderr[-2_000:]}", flush=True)
    return int(not is_right)


def _lay_out(suite: Suite, python: Path, folder: Path) -> None:
    """Copy the suite's tests into ``folder``, and put the marker in the place of its harness."""
    source = _unpacked(suite["source"], python) if "source" in suite else _installed(suite["module"], python)
    for name in suite["copies"]:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, folder / name)
    text = (HERE / "harness" / suite["harness"]).read_text(encoding="utf-8")
    with (folder / suite["appended_to"]).open("a", encoding="utf-8") as conftest:
        conftest.write(text)


def _unpacked(distribution: str, python: Path) -> Path:
    """Return the folder of a distribution's source, which is downloaded once."""
    folder = python.parents[1] / "sources" / distribution
    if not folder.exists():
        with tempfile.TemporaryDirectory() as place:
            options = ["--quiet", "--no-deps", "--no-binary", distribution.partition("==")[0], "--dest", place]
            command = [str(python), "-m", "pip", "download", *options, distribution]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            archives = list(Path(place).glob("*.tar.gz"))
            if done.returncode or not archives:
                raise CannotBeMadeError(f"the source of {distribution}: {done.stderr.strip()[-300:]}")
            with tarfile.open(archives[0]) as archive:
                archive.extractall(Path(place) / "unpacked", filter="data")
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(Path(place) / "unpacked", folder)  # at once: an interrupted extraction leaves no part of it
    return next(path for path in folder.iterdir() if path.is_dir())


def _installed(module: str, python: Path) -> Path:
    found = next(python.parents[1].glob(f"lib/python3*/site-packages/{module.replace('.', '/')}"))
    return Path(found)


if __name__ == "__main__":
    sys.exit(main())
