"""Write the files of a command: JSON for programs, pages for people; each file name is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, text: str) -> None:
    """Write a text and print the path."""
    path.write_text(text, encoding="utf-8")
    print(f"written: {path}")


def write_json(path: Path, data: Any) -> None:
    """Write JSON without spaces, because programs read it."""
    write(path, json.dumps(data, separators=(",", ":")) + "\n")
