"""Every public class of the engine has a row in the vocabulary of CONTRIBUTING.md, and every row's classes exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FRAMEWORKS_AND_SUITE = {"torch", "oneflow", "mindspore", "tensorflow", "megengine", "conformance", "demo"}


def _engine_classes(root: Path) -> set[str]:
    engine = root / "collshim"
    files = [path for path in engine.rglob("*.py") if path.relative_to(engine).parts[0] not in FRAMEWORKS_AND_SUITE]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return {node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}


def _vocabulary(root: Path) -> set[str]:
    """The class names in the second column of the engine's table."""
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("### The engine")[2].partition("### The suite")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name for row in rows for name in re.findall(r"`([A-Z]\w*[a-z]\w*)`", row[1])}


def test_every_public_class_of_the_engine_is_in_the_vocabulary(root: Path) -> None:
    classes = _engine_classes(root)
    assert "Communicator" in classes
    assert _vocabulary(root) == classes
