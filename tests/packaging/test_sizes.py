"""A file is about one subject, and can be read at one sitting."""

from __future__ import annotations

from pathlib import Path

LIMIT = 400
FOLDERS = ("collshim", "adapters", "conformance", "demo", "tests", "docs")


def test_no_python_file_is_longer_than_the_limit(root: Path) -> None:
    lines = {
        str(path.relative_to(root)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
    }
    assert {name: count for name, count in lines.items() if count > LIMIT} == {}
    assert "tests/packaging/test_sizes.py" in lines
