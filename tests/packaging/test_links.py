"""The links of `collshim/`, and the folder `adapters/`, the target of most (hazards 2 and 3)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from collshim.frameworks import FRAMEWORKS
from tests.packaging.conftest import Run


@pytest.fixture(scope="module")
def links(checkout: Path) -> dict[str, Path]:
    """Return the links of `collshim/` by their names."""
    return {path.name: path for path in (checkout / "collshim").iterdir() if path.is_symlink()}


def test_each_framework_suite_and_demo_has_its_link(links: dict[str, Path], root: Path, frameworks: set[str]) -> None:
    targets = {name: root / "adapters" / name for name in frameworks}
    targets |= {name: root / name for name in ("conformance", "demo")}
    assert {name: link.resolve() for name, link in links.items()} == targets


def test_links_are_relative(links: dict[str, Path]) -> None:
    assert [name for name, link in links.items() if link.readlink().is_absolute()] == []


def test_links_are_committed_as_links(links: dict[str, Path], root: Path) -> None:
    if not (root / ".git").exists():
        pytest.skip("not a checkout: nothing here was committed")
    listing = subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "--stage",
            "--",
            *(f"collshim/{name}" for name in links),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    ).stdout
    modes = {line.split("\t")[1]: line.split()[0] for line in listing.splitlines()}
    assert modes == {f"collshim/{name}": "120000" for name in links}


@pytest.mark.parametrize("tool", ["hatch", "ruff", "pyright"])
def test_nothing_is_read_twice_through_a_link(links: dict[str, Path], settings: dict[str, Any], tool: str) -> None:
    left_out = {
        "hatch": settings["tool"]["hatch"]["build"]["exclude"],
        "ruff": settings["tool"]["ruff"]["extend-exclude"],
        "pyright": [path for path in settings["tool"]["pyright"]["exclude"] if not path.startswith("tests/")],
    }[tool]
    assert {path.lstrip("/") for path in left_out} - {"**/__pycache__"} == {f"collshim/{name}" for name in links}


def test_settings_name_every_framework(settings: dict[str, Any]) -> None:
    banned = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    assert set(banned) == {*FRAMEWORKS, "cupy"}
    overrides = [override["module"] for override in settings["tool"]["mypy"]["overrides"]]
    (untyped,) = (names for names in overrides if "cupy.*" in names)
    assert {f"{name}.*" for name in FRAMEWORKS if name != "torch"} <= set(untyped)


def test_adapters_folder_holds_only_folders(root: Path) -> None:
    assert [path.name for path in (root / "adapters").iterdir() if not path.is_dir()] == []


def test_adapters_folder_holds_no_tests(root: Path) -> None:
    tests = re.compile(r"(test_.*|.*_test|conftest)\.py")
    assert [str(path) for path in (root / "adapters").rglob("*.py") if tests.fullmatch(path.name)] == []


def test_pytest_does_not_mistake_adapters_for_frameworks(root: Path, request: pytest.FixtureRequest) -> None:
    assert request.config.getoption("importmode") == "importlib"
    assert str(root / "adapters") not in sys.path
    assert {root / "adapters", root / "collshim"}.isdisjoint(Path(torch.__file__).resolve().parents)


def test_adapters_as_a_package_fails_the_build(python: Run, root: Path, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "LICENSE", "hatch_build.py", "compile_core.py"):
        shutil.copy(root / name, tmp_path)
    for name in ("README.md", "adapters/__init__.py", "adapters/torch/__init__.py", "collshim/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    done = python("-m", "build", "--no-isolation", "--wheel", str(tmp_path), variables={"COLLSHIM_CORE": "skip"})
    assert done.returncode != 0
    assert "collshim/__init__.py" in done.stdout + done.stderr
