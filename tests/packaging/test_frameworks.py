"""Every file that a framework needs exists, and the lists that no program can derive name every framework."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from collshim.frameworks import FRAMEWORKS

FILES = (
    "docs/{}.md",
    "demo/examples/{}.py",
    "demo/training/{}.py",
    "tests/robustness/spellings/{}.py",
    "tests/adapters/signatures/{}.txt",
)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("file", FILES)
def test_a_framework_has_the_file(root: Path, framework: str, file: str) -> None:
    assert (root / file.format(framework)).is_file()


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_navigation_has_its_page(root: Path, framework: str) -> None:
    line = f"      - {FRAMEWORKS[framework].title}: {framework}.md"
    assert line in (root / "mkdocs.yml").read_text().splitlines()


@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "torch"])
def test_mypy_need_not_find_it(settings: dict[str, Any], framework: str) -> None:
    assert any(f"{framework}.*" in entry["module"] for entry in settings["tool"]["mypy"]["overrides"])
