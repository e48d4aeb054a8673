"""What a command writes into files: JSON for programs, pages for people; each file is told as it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, text: str) -> None:
    """Write a text, and say where."""
    path.write_text(text, encoding="utf-8")
    print(f"written: {path}")


def write_json(path: Path, data: Any) -> None:
    """Write it without spaces: programs read it."""
    write(path, json.dumps(data, separators=(",", ":")) + "\n")
