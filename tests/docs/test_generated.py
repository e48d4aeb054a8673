"""The pages of docs/ that are generated from code."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


def test_no_generated_page_is_stale() -> None:
    found = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, timeout=200
    )
    assert (found.returncode, found.stdout) == (0, "")


@pytest.fixture
def generate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the generator, with one page in a temporary folder."""
    spec = spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "pages", lambda: {"docs/differences/a.md": lambda: "text"})
    return module


def test_missing_page_is_stale_until_written(generate: Any, tmp_path: Path) -> None:
    assert [generate.main(["--check"]), generate.main([]), generate.main(["--check"])] == [1, 0, 0]
    assert (tmp_path / "docs/differences/a.md").read_text() == "text"


def test_changed_page_is_stale(generate: Any, tmp_path: Path) -> None:
    generate.main([])
    (tmp_path / "docs/differences/a.md").write_text("another text")
    assert generate.main(["--check"]) == 1


def test_obsolete_page_is_stale_until_removed(generate: Any, tmp_path: Path) -> None:
    generate.main([])
    (tmp_path / "docs/differences/b.md").write_text("text")
    assert [generate.main(["--check"]), generate.main([]), generate.main(["--check"])] == [1, 0, 0]
    assert not (tmp_path / "docs/differences/b.md").exists()
