"""The tables of classes and modules in docs/glossary.md and docs/architecture.md have those of the engine."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from collshim.frameworks import FRAMEWORKS

FRAMEWORKS_AND_SUITE = {*FRAMEWORKS, "conformance", "demo"}


def _engine(root: Path) -> dict[str, Path]:
    """Return every module of the engine by its dotted name below ``collshim``, without packages that have no text."""
    engine = root / "collshim"
    names = {path.relative_to(engine).with_suffix(""): path for path in engine.rglob("*.py")}
    modules = {".".join(name.parts).removesuffix(".__init__"): path for name, path in names.items()}
    own = {name: path for name, path in modules.items() if name.split(".")[0] not in FRAMEWORKS_AND_SUITE}
    return {name: path for name, path in own.items() if len(ast.parse(path.read_text(encoding="utf-8")).body) > 1}


def _rows(page: Path, start: str, end: str) -> list[list[str]]:
    """Return the rows of the table between two headings."""
    table = page.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
    return [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]


def test_vocabulary_has_every_public_engine_class(root: Path) -> None:
    nodes = [node for path in _engine(root).values() for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}
    rows = _rows(root / "docs" / "glossary.md", "## The engine", "## The suite")
    assert {name for row in rows for name in re.findall(r"`([A-Z]\w*[a-z]\w*)`", row[1])} == classes
    assert "Communicator" in classes


def test_architecture_has_every_engine_module(root: Path) -> None:
    names = set[str]()
    for row in _rows(root / "docs" / "architecture.md", "## Layers and modules", "\f"):
        first, *others = re.findall(r"`([\w.]+)`", row[0]) or [""]
        names |= {first, *(other if other[0] != "." else first.rpartition(".")[0] + other for other in others)}
    assert names - {""} == _engine(root).keys() - {"__init__"}
