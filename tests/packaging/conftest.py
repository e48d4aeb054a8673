"""One wheel, one sdist and one installed copy for all tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Run = Callable[..., "subprocess.CompletedProcess[str]"]
NOTHING: Mapping[str, str] = {}


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def checkout(root: Path) -> Path:
    """Return the root if it has the links; an unpacked sdist has none."""
    if not (root / ".git").exists() and not (root / "collshim" / "torch").is_symlink():
        pytest.skip("an unpacked sdist has no links")
    return root


@pytest.fixture(scope="session")
def settings(root: Path) -> dict[str, Any]:
    """Return the content of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def frameworks(root: Path) -> set[str]:
    return {folder.name for folder in (root / "adapters").iterdir() if folder.is_dir()}


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs this interpreter in an empty folder, with ``path`` as its PYTHONPATH.

    ``variables`` are added to its environment, in which ``COLLSHIM_CORE`` is not set.
    """
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run(
        *arguments: str, path: Path | None = None, cwd: Path = elsewhere, variables: Mapping[str, str] = NOTHING
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(path or ""), "COLLSHIM_CORE": "", **variables}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
        )

    return run


def _build(python: Run, root: Path, out: Path, *formats: str) -> Path:
    done = python("-m", "build", "--no-isolation", *formats, "--outdir", str(out), str(root))
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def wheel(python: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the tree."""
    return next(_build(python, root, tmp_path_factory.mktemp("wheel"), "--wheel").glob("*.whl"))


@pytest.fixture(scope="session")
def release(python: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from it, in one folder."""
    return _build(python, root, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def installed(python: Run, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in a folder, without its dependencies."""
    target = tmp_path_factory.mktemp("installed")
    done = python("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    assert done.returncode == 0, done.stdout + done.stderr
    return target
