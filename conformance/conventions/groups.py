"""What a group is in each framework, and which ranks roots and peers are."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.conformance.bindings import FRAMEWORKS
from collshim.conformance.conventions.starts import NAMES
from collshim.conformance.conventions.tables import table

_TITLES = ("", "a group is", "its order", "roots and peers are")
_GROUPS = {
    "torch": (
        "an object; -100 on a rank outside",
        "sorted, unless `sort_ranks=False`",
        "global ranks; `group_src` and the like are ranks in the group",
    ),
    "oneflow": ("the world, always", "–", "global ranks"),
    "mindspore": ("a name", "kept", "global ranks"),
    "tensorflow": ("a strategy's replicas", "replica id", "–"),
    "megengine": ("a `Group`", "kept; the first is the root", "group order; of send and recv: global ranks"),
}


def shared(frameworks: Sequence[str] = FRAMEWORKS) -> str:
    """The section of these frameworks."""
    rows = [(NAMES[framework], *_GROUPS[framework]) for framework in frameworks]
    return f"## Groups and ranks\n\n{table(_TITLES, rows)}"
