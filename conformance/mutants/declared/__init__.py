"""The declared patches: one file per layer of the engine, one per adapter.

    [[mutant]]
    name = "split-cuts-the-wrong-axis"
    fault = "parts are cut along the axis after the requested one"
    file = "layout.py"
    within = "split"
    old = "movedim(axis, 0)"
    new = "movedim(axis - 1, 0)"
    collectives = ["reduce_scatter"]

``old`` must occur exactly once in ``within``; differences in spacing and line breaks do not matter.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from collshim.conformance.mutants.mutant import Mutant, PatchError, span
from collshim.frameworks import FRAMEWORKS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
LAYERS = ("engine", "layout", "transports", "adapters")


@dataclass(frozen=True, kw_only=True)
class Patch(Mutant):
    """A declared mutant: it replaces the text ``old`` with ``new``."""

    old: str
    new: str

    def apply(self, source: str) -> str:
        """Return the text of the file with ``old`` replaced by ``new``."""
        start, end = span(source, self.within)
        pattern = r"\s+".join(map(re.escape, self.old.split()))
        found = list(re.finditer(pattern, source[start:end]))
        if len(found) != 1:
            where = f"{self.file}, {self.within}" if self.within else self.file
            raise PatchError(f"{self.name}: {self.old!r} occurs {len(found)} times in {where}, should be once")
        return source[: start + found[0].start()] + self.new + source[start + found[0].end() :]


@cache
def declared() -> tuple[Patch, ...]:
    """Return every declared patch, layer by layer.

    Raises:
        ValueError: two patches have the same name, or one names no collective.
    """
    files = [*LAYERS[:-1], *FRAMEWORKS]
    found = [_patch(name, entry) for name in files for entry in _entries(FOLDER / f"{name}.toml")]
    names = [patch.name for patch in found]
    bad = sorted({patch.name for patch in found if names.count(patch.name) > 1 or not patch.collectives})
    if bad:
        raise ValueError(f"declared twice, or without a collective: {', '.join(bad)}")
    return tuple(found)


def _entries(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return entries


def _patch(file: str, entry: dict[str, Any]) -> Patch:
    layer = "adapters" if file in FRAMEWORKS else file
    collectives = tuple(entry.pop("collectives"))
    return Patch(layer=layer, collectives=collectives, **entry)
