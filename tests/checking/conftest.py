"""How the tests check a program that they write into a folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from collshim.checking.report import Report, check

Checked = Callable[..., Report]


@pytest.fixture
def checked(tmp_path: Path) -> Checked:
    """Return ``checked(source, framework="", **others)``: the report of a script, beside other modules by name."""

    def checked(source: str, framework: str = "", **others: str) -> Report:
        for name, text in {"script": source, **others}.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        return check([tmp_path / "script.py"], framework)

    return checked
