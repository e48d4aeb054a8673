"""docs/settings.md has every variable that the code reads, and every option with its default."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import collshim
from collshim.frameworks import FRAMEWORKS
from collshim.settings import Options

ROOT = Path(collshim.__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `COLLSHIM_")]
OPTIONS = {field.name: field.default for field in dataclasses.fields(Options) if field.name != "of_adapters"}
OPTIONS |= {name: values[0] for entry in FRAMEWORKS.values() for name, values in entry.options.items()}
SHIPPED = ("collshim", "adapters", "conformance", "demo")


def test_every_variable_is_on_the_page() -> None:
    texts = (path.read_text(encoding="utf-8") for folder in SHIPPED for path in (ROOT / folder).rglob("*.py"))
    read = {name for text in texts for name in re.findall(r"COLLSHIM_[A-Z_]*[A-Z]", text)}
    read |= {f"COLLSHIM_{name.upper()}" for name in OPTIONS}
    assert read == set(re.findall(r"COLLSHIM_[A-Z_]*[A-Z]", PAGE))


def test_every_option_shows_its_variable_and_default() -> None:
    found = {row[1].strip("`"): (row[0].strip("|` "), row[3].strip("`")) for row in ROWS if "(" not in row[1]}
    assert set(found) == set(OPTIONS)
    for name, wanted in OPTIONS.items():
        variable, default = found[name]
        assert variable == f"COLLSHIM_{name.upper()}"
        if isinstance(wanted, str | float | int) and not isinstance(wanted, bool):
            assert default == (f"{wanted:g}" if isinstance(wanted, float) else str(wanted))
