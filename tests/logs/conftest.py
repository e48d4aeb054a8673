"""A folder for the ranks' logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from collshim.logs.files import VARIABLE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the ranks leave their logs."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "logs"))
    return tmp_path / "logs"
