"""docs/settings.md has every variable that the code reads, and every option with its default."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import collshim
from collshim.settings import Options

ROOT = Path(collshim.__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `COLLSHIM_")]
SHIPPED = ("collshim", "adapters", "conformance", "demo")


def test_every_variable_in_the_code_is_on_the_page() -> None:
    texts = (path.read_text(encoding="utf-8") for folder in SHIPPED for path in (ROOT / folder).rglob("*.py"))
    read = {name for text in texts for name in re.findall(r"COLLSHIM_[A-Z_]*[A-Z]", text)}
    read |= {f"COLLSHIM_{field.name.upper()}" for field in dataclasses.fields(Options)}
    assert read == set(re.findall(r"COLLSHIM_[A-Z_]*[A-Z]", PAGE))


def test_every_option_has_its_variable_and_its_default() -> None:
    found = {row[1].strip("`"): (row[0].strip("|` "), row[3].strip("`")) for row in ROWS if "(" not in row[1]}
    assert set(found) == {field.name for field in dataclasses.fields(Options)}
    for field in dataclasses.fields(Options):
        variable, default = found[field.name]
        assert variable == f"COLLSHIM_{field.name.upper()}"
        if isinstance(field.default, str | float | int) and not isinstance(field.default, bool):
            assert default == (f"{field.default:g}" if isinstance(field.default, float) else str(field.default))
