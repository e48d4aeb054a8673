"""The known differences of adapters from the recordings: one file per framework, with a reason for each.

    [[deviation]]
    reason = "gloo leaves partial sums in the buffers of ranks other than dst; here they are left alone"
    cases = ["reduce/to 0@2", "reduce/to 0@3"]

A case is named by its id and the sizes of its worlds, without wildcards: "reduce/to 0@2,3". The run fails if a declared
case agrees after all, or names no recording. A function that is not implemented is not a deviation: a path that does
not resolve is missing, and is counted separately.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent


@cache
def declared(framework: str) -> dict[str, str]:
    """Return the reason of each declared deviation, by the name of its recording.

    Raises:
        ValueError: a recording is declared twice or without a reason.
    """
    path = FOLDER / f"{framework}.toml"
    found: dict[str, str] = {}
    for entry in _entries(path):
        for name in _names(entry["cases"]):
            if name in found or not entry.get("reason"):
                raise ValueError(f"{path.name}: {name!r} is declared twice or without a reason")
            found[name] = entry["reason"]
    return found


def _entries(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8")).get("deviation", [])
    return entries


def _names(cases: list[str]) -> list[str]:
    """Return one name for each size: "a/b@2,3" is "a/b@2" and "a/b@3"."""
    names = []
    for case in cases:
        id, _, sizes = case.rpartition("@")
        names += [f"{id}@{size}" for size in sizes.split(",")]
    return names
