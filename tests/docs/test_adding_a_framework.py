"""The function that docs/adding-a-framework.md shows."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from collshim.oneflow import comm

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-framework.md"


def test_the_function_on_the_page_is_the_adapters() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks == [inspect.getsource(comm.all_gather)]
