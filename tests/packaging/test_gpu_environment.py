"""The tests for GPUs run on machines that have only what their page names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

NAMED = ("torch", "numpy", "pytest", "pytest-timeout")

ELSEWHERE = "rich"
"""A package of the tests that none of them requires."""


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in such an environment, in which pytest finds only the named plugin."""
    surroundings = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    surroundings.pop("PYTEST_ADDOPTS", None)
    alone = [sys.executable, str(root / "tests/packaging/named_alone.py"), ",".join(NAMED)]
    return subprocess.run(
        [*alone, *command], cwd=root, env=surroundings, capture_output=True, text=True, timeout=200, check=False
    )


def written(folder: Path, code: str) -> str:
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    return str(script)


def test_page_names_requirements_of_gpu_tests(root: Path) -> None:
    text = (root / "docs" / "gpu.md").read_text(encoding="utf-8")
    found = re.search(r"needs (torch, [\w ,-]*), and nothing else", text)
    assert found is not None
    assert [name.lower() for name in re.split(", | and ", found[1])] == [*NAMED]


def test_gpu_tests_start_with_the_named_requirements(root: Path, tmp_path: Path) -> None:
    report = tmp_path / "gpu.md"
    done = run(root, "tests/gpu", "--no-figures", "--report", str(report), "--", "-p", "pytest_timeout")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in report.read_text(encoding="utf-8")


def test_figures_need_no_more(root: Path, tmp_path: Path) -> None:
    done = run(root, written(tmp_path, f"import sys; sys.path.insert(0, {str(root)!r}); import tests.gpu.figures"))
    assert done.returncode == 0, done.stderr


def test_nothing_else_is_found(root: Path, tmp_path: Path) -> None:
    done = run(root, written(tmp_path, f"import torch, numpy, pytest, pytest_timeout\nimport {ELSEWHERE}"))
    assert f"{ELSEWHERE} belongs to no named distribution" in done.stderr
