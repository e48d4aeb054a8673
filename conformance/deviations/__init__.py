"""Where an adapter is known to differ from what was recorded: one file per framework, a reason for each.

    [[deviation]]
    reason = "gloo leaves partial sums in the buffers of ranks other than dst; here they are left alone"
    cases = ["reduce/to 0@2", "reduce/to 0@3"]

A case is named by its id and the sizes of its worlds, without wildcards: "reduce/to 0@2,3". One that agrees after all
fails the run, and so does a name that no recording has. "Not implemented" is no deviation: what does not resolve is
missing, and counted apart.
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
    """The reason of each declared deviation, by the name of its recording.

    Raises:
        ValueError: a recording is named twice, or without a reason.
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
    """One name for each size: "a/b@2,3" is "a/b@2" and "a/b@3"."""
    names = []
    for case in cases:
        id, _, sizes = case.rpartition("@")
        names += [f"{id}@{size}" for size in sizes.split(",")]
    return names
