"""The tests on the page about tests pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.threads

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"
SKETCHES = ("collshim_world", "check(rank)")
"""Names in blocks that are not for the test module itself."""


def test_examples_of_the_page_pass(ran: Ran) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [block for block in blocks if not any(name in block for name in SKETCHES)]
    result = ran("\n\n".join(shown))
    result.assert_outcomes(passed="".join(shown).count("def test_") + 1)  # one of them on two sizes
