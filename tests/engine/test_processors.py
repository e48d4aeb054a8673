"""The processors that a process may use: those it is bound to, and at most its container's limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from collshim import processors
from collshim.launching import info


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Bind the process to eight processors, without control groups; return the folder where these are mounted."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(processors, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(processors, "_MOUNTED", tmp_path)
    return tmp_path


def limit(folder: Path, quota: str, period: str = "100000", version: int = 2) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (folder / "cpu.max").write_text(f"{quota} {period}\n")
    else:
        (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
        (folder / "cpu.cfs_period_us").write_text(f"{period}\n")


def test_bound_processors_count() -> None:
    assert processors.usable() == 8


@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [("200000", "100000", 2), ("150000", "100000", 2), ("50000", "100000", 1), ("1600000", "100000", 8)],
)
@pytest.mark.parametrize(("version", "line"), [(2, "0::/own"), (1, "4:cpu,cpuacct:/own")])
def test_lower_limit_of_the_group_counts(
    version: int, line: str, quota: str, period: str, expected: int, eight: Path
) -> None:
    (eight / "cgroup").write_text(f"9:memory:/other\n{line}\n")
    limit(eight / ("own" if version == 2 else "cpu/own"), quota, period, version)
    assert processors.usable() == expected


@pytest.mark.parametrize(("version", "quota"), [(2, "max"), (1, "-1")])
def test_group_without_a_limit_does_not_count(version: int, quota: str, eight: Path) -> None:
    (eight / "cgroup").write_text("0::/own\n" if version == 2 else "1:cpu:/own\n")
    limit(eight / ("own" if version == 2 else "cpu/own"), quota, version=version)
    assert processors.usable() == 8


def test_lowest_limit_of_all_parents_counts(eight: Path) -> None:
    (eight / "cgroup").write_text("0::/user/own\n")
    limit(eight / "user" / "own", "600000")
    limit(eight / "user", "300000")
    assert processors.usable() == 3


def test_container_sees_its_limit_in_the_topmost_folder(eight: Path) -> None:
    (eight / "cgroup").write_text("4:cpu,cpuacct:/docker/0123\n")
    limit(eight / "cpu", "200000", version=1)
    assert processors.usable() == 2


def test_limits_of_other_controllers_do_not_count(eight: Path) -> None:
    (eight / "cgroup").write_text("3:cpuset:/own\nunexpected\n")
    limit(eight / "cpu" / "own", "100000", version=1)
    assert processors.usable() == 8


def test_info_names_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert "64 CPUs, 8 usable by this process" in "\n".join(info.lines("1"))


THREADS = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import collshim, torch
if __name__ == "__main__":
    print(collshim.launch(torch.get_num_threads, 1, ranks="processes", timeout=200))
"""


@pytest.mark.processes
def test_processes_compute_on_the_bound_processors(tmp_path: Path) -> None:
    script = tmp_path / "threads.py"
    script.write_text(THREADS)
    variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True, timeout=200)
    assert done.stdout == "[1]\n", done.stderr
