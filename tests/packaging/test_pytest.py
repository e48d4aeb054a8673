"""The suite runs through its link; by its folder it would be imported a second time (hazard 5)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.conftest import Run

pytestmark = pytest.mark.processes

ONE_TEST = "def test_its_name(): assert __name__ == 'collshim.conformance.test_one'"


@pytest.fixture
def small(root: Path, tmp_path: Path) -> Path:
    """Make a checkout whose suite is one test, with this project's settings of pytest."""
    for folder in ("collshim", "conformance"):
        (tmp_path / folder).mkdir()
    (tmp_path / "collshim" / "__init__.py").touch()
    (tmp_path / "collshim" / "conformance").symlink_to("../conformance")
    (tmp_path / "conformance" / "test_one.py").write_text(ONE_TEST)
    shutil.copy(root / "conformance" / "__init__.py", tmp_path / "conformance")
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def test_suite_runs_through_its_link(python: Run, small: Path) -> None:
    done = python("-m", "pytest", "collshim/conformance", cwd=small, path=small)
    assert " 1 passed" in done.stdout, done.stdout


def test_suite_runs_as_a_package(python: Run, small: Path) -> None:
    done = python("-m", "pytest", "--pyargs", "collshim.conformance", cwd=small, path=small)
    assert " 1 passed" in done.stdout, done.stdout


def test_suite_refuses_to_run_by_its_folder(python: Run, small: Path) -> None:
    done = python("-m", "pytest", "conformance", cwd=small, path=small)
    assert done.returncode != 0
    assert "should be 'collshim.conformance'" in done.stdout


def test_bare_pytest_runs_the_suite_through_its_link(settings: dict[str, Any]) -> None:
    assert settings["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests", "collshim/conformance"]
