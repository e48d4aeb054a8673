"""The first screen of README.md: its outputs are those of the pages, whose own tests run the commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    "$ collshim invariance ": "docs/invariance.md",
    "$ collshim check ": "docs/check.md",
    "$ pytest ": "docs/testing.md",
}


@pytest.mark.parametrize("command", PAGES)
def test_output_is_that_of_the_page(command: str) -> None:
    (block,) = re.findall(rf"```\w*\n({re.escape(command)}.*?)```", README, re.DOTALL)
    page = (ROOT / PAGES[command]).read_text(encoding="utf-8")
    parts = list(filter(None, block.split("...\n")))
    assert len(parts[0].splitlines()) > 1
    assert all(part in page for part in parts)


def test_what_it_answers_comes_before_all_else() -> None:
    headings = re.findall(r"^## (.*)$", README, re.MULTILINE)
    assert headings[:2] == ["Questions it answers", "Five frameworks, one engine"]
