"""Run the tests that need a GPU, and write their results, with the hardware and the versions, as Markdown.

python tests/gpu                        the tests, then the figures; the report goes to dist/gpu.md
python tests/gpu --report FILE -- -x    elsewhere; arguments after the two dashes are pytest's

Needs torch with NCCL, NumPy, pytest and pytest-timeout, nothing else; collshim itself is taken from this checkout if it
is not installed.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
import traceback
import types
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.cuda import nccl

ROOT = Path(__file__).resolve().parents[2]


class Tally:
    """A plugin of pytest's that counts the tests' outcomes."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.told: list[str] = []
        self.warnings: dict[str, int] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a module that is skipped, or cannot be imported."""
        if not report.passed:
            self._tell(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that fails in its setup or teardown as failed; one that passes has run to its end."""
        if not report.passed:
            self._tell(report)
        elif report.when == "call":
            self.counts["passed"] += 1

    def _tell(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.counts[report.outcome] += 1
        self.told.append(f"- {report.outcome}: `{report.nodeid}`: {_first_line(report)}")

    def pytest_warning_recorded(self, warning_message: Any) -> None:
        """Count warnings, which are errors elsewhere, because other versions warn of other things."""
        text = f"{warning_message.category.__name__}: {str(warning_message.message).splitlines()[0][:160]}"
        self.warnings[text] = self.warnings.get(text, 0) + 1

    def lines(self) -> list[str]:
        """Return the counts, then the tests that did not pass, then the warnings."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items())
        warned = [f"- {count} times {text}" for text, count in self.warnings.items()]
        return [f"Tests: {counts}.", "", *self.told, *warned]


def _first_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the first line of a skip's reason, or of an error."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    told = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E")]
    return (told or report.longreprtext.splitlines() or ["no word"])[0][:300]


def main() -> int:
    """Test, measure, write; return pytest's exit status, or 1 if the measurement failed."""
    ours, theirs = _split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", type=Path, default=ROOT / "dist" / "gpu.md", help="the file of the report")
    parser.add_argument("--no-figures", action="store_true", help="only the tests")
    chosen = parser.parse_args(ours)
    _find_ours()
    tally = Tally()
    rc = int(pytest.main(["-q", "-W", "default", "-p", "no:cacheprovider", *theirs, str(ROOT / "tests/gpu")], [tally]))
    rc = 0 if rc == pytest.ExitCode.NO_TESTS_COLLECTED and not tally.counts["failed"] else rc  # all were skipped
    _write(chosen.report, [*_place(), "", *tally.lines()])
    if chosen.no_figures or not torch.cuda.is_available():
        return rc
    try:
        figures = importlib.import_module("tests.gpu.figures").lines()
    except Exception:
        figures = ["The figures could not be taken:", "", "```", traceback.format_exc().rstrip(), "```"]
        rc = rc or 1
    _write(chosen.report, [*_place(), "", *tally.lines(), "", *figures])
    return rc


def _split_arguments(given: list[str]) -> tuple[list[str], list[str]]:
    """Split our arguments from pytest's."""
    place = given.index("--") if "--" in given else len(given)
    return given[:place], given[place + 1 :]


def _find_ours() -> None:
    """Import this ``tests`` folder, even if another package's folder of that name is installed."""
    if find_spec("collshim") is None:
        sys.path.insert(0, str(ROOT))
    package = types.ModuleType("tests")
    package.__path__ = [str(ROOT / "tests")]
    sys.modules["tests"] = package


def _write(report: Path, lines: list[str]) -> None:
    report.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    report.write_text(text, encoding="utf-8")
    print(f"\n{text}\nwritten to {report}")


def _place() -> list[str]:
    """Describe the hardware and the versions."""
    versions = {"Python": platform.python_version(), "torch": str(torch.__version__), "CUDA": str(torch.version.cuda)}
    if torch.distributed.is_nccl_available():
        versions["NCCL"] = ".".join(map(str, nccl.version()))
    versions |= {name: _version(*known) for name, known in _PACKAGES.items()}
    return [f"On {_hardware()}.", "", ", ".join(f"{name} {number}" for name, number in versions.items()) + "."]


_PACKAGES = {
    "CuPy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "NumPy": ("numpy",),
    "collshim": ("collshim",),
}


def _version(*names: str) -> str:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed" if names != ("collshim",) else "from a checkout"


def _hardware() -> str:
    if not torch.cuda.is_available():
        return f"{platform.machine()} without a GPU"
    found = torch.cuda.get_device_properties(0)
    size = f"{found.total_memory / 2**30:.0f} GiB, {found.multi_processor_count} multiprocessors"
    return f"{torch.cuda.device_count()} x {found.name} ({size}, capability {found.major}.{found.minor})"


if __name__ == "__main__":
    sys.exit(main())
