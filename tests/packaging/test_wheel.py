"""The built distributions hold the files of the tree (hazard 6)."""

from __future__ import annotations

import configparser
import os
import tarfile
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from compile_core import FILE, FOLDER

pytestmark = pytest.mark.processes

PACKAGES = {
    "collshim": "collshim",
    "adapters": "collshim",
    "conformance": "collshim/conformance",
    "demo": "collshim/demo",
}


def _tree(root: Path) -> set[str]:
    """Return every file of the four folders, and pytest's plugin, by its name in the wheel; links are not followed.

    The compiled core of a checkout is left out.
    """
    return {"collshim_pytest.py"} | {
        (package / Path(parent).relative_to(root / folder) / name).as_posix()
        for folder, package in ((folder, Path(package)) for folder, package in PACKAGES.items())
        for parent, _, names in os.walk(root / folder)
        for name in names
        if Path(parent).name != "__pycache__" and not fnmatch(name, "_core*.so")
    }


def _content(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_wheel_holds_exactly_the_files_of_the_tree(root: Path, wheel: Path) -> None:
    assert _content(wheel) - {f"{FOLDER}/{FILE}"} == _tree(root)


def test_wheel_built_from_the_sdist_is_equal(release: Path, wheel: Path) -> None:
    assert _content(next(release.glob("*.whl"))) == _content(wheel)


def test_wheel_is_marked_as_typed(wheel: Path) -> None:
    assert "collshim/py.typed" in _content(wheel)


def test_wheel_carries_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")]


def test_wheel_installs_the_command(wheel: Path, settings: dict[str, Any]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        points = configparser.ConfigParser()
        points.read_string(archive.read(name).decode())
    assert dict(points["console_scripts"]) == settings["project"]["scripts"]
    assert dict(points["pytest11"]) == settings["project"]["entry-points"]["pytest11"]


def test_sdist_holds_files_for_tests_and_makefile(release: Path) -> None:
    with tarfile.open(next(release.glob("*.tar.gz"))) as archive:
        tops = {Path(name).parts[1] for name in archive.getnames()}
    assert tops >= {
        "adapters",
        "collshim",
        "collshim_pytest.py",
        "conformance",
        "conftest.py",
        "demo",
        "docs",
        "tests",
        "CONTRIBUTING.md",
        "Makefile",
        "compile_core.py",
        "constraints.txt",
        "hatch_build.py",
        "mkdocs.yml",
        "pyproject.toml",
    }


def test_sdist_holds_no_links(release: Path) -> None:
    with tarfile.open(next(release.glob("*.tar.gz"))) as archive:
        assert [member.name for member in archive.getmembers() if not member.isfile()] == []
