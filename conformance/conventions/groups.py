"""Groups in each framework, and the ranks that roots and peers are given as."""

from __future__ import annotations

from collections.abc import Iterable

from collshim.conformance.reporting.markdown import table
from collshim.frameworks import FRAMEWORKS

_TITLES = ("", "a group is", "its order", "roots and peers are")


def shared(frameworks: Iterable[str] = FRAMEWORKS) -> str:
    """Return the section about these frameworks."""
    rows = [(FRAMEWORKS[framework].title, *FRAMEWORKS[framework].group) for framework in frameworks]
    return f"## Groups and ranks\n\n{table(_TITLES, rows)}"
