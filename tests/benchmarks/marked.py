"""The cost of a test with the marker ``ranks``: pytest's own time per test, beside that of a plain test."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.benchmarks.measure import DEADLINE

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "plain"
MARKERS = {
    PLAIN: "",
    "4 threads": "@pytest.mark.ranks(4)",
    "4 threads, no default group": "@pytest.mark.ranks(4, default_group=False)",
    "2 processes": "@pytest.mark.ranks(2, processes=True)",
    "4 processes": "@pytest.mark.ranks(4, processes=True)",
}
_TEST = """
import pytest, torch, torch.distributed as dist
@pytest.mark.parametrize("n", range({count}))
{marker}
def test_ones(n):
    total = torch.ones(1)
    if dist.is_initialized():
        dist.all_reduce(total)
    assert total.item() in (1.0, 2.0, 4.0)
"""


def measure_marked(count: int) -> dict[str, list[float]]:
    """Return the seconds of each of ``count`` tests, by kind; without the first, which starts the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        return {kind: _times(Path(folder), marker, count + 1)[1:] for kind, marker in MARKERS.items()}


def _times(folder: Path, marker: str, count: int) -> list[float]:
    (folder / "test_marked.py").write_text(_TEST.format(count=count, marker=marker), encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "test_marked.py"]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True, timeout=DEADLINE)
    (suite,) = ElementTree.parse(folder / "report.xml").getroot()
    return [float(case.get("time", "nan")) for case in suite]


def rows(times: dict[str, list[float]]) -> list[list[str]]:
    """Return each kind of test, its mean time in milliseconds, and how much that is above a plain test.

    pytest rounds each time to a millisecond, which a mean of many evens out and a median does not.
    """
    means = {kind: statistics.fmean(seconds) for kind, seconds in times.items()}
    return [[kind, f"{1e3 * mean:.1f}", f"{1e3 * (mean - means[PLAIN]):.1f}"] for kind, mean in means.items()]
