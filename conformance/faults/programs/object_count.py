"""mismatched object collective: rank 1 awaits two objects of a broadcast of three.

blame: 1
told: 1
"""

from __future__ import annotations

from typing import Any


def fault(dist: Any) -> None:
    """One object would be lost."""
    found = [None] * (2 if dist.get_rank() == 1 else 3)
    dist.broadcast_object_list(["a", "b", "c"] if dist.get_rank() == 0 else found, src=0)  # <- here


def twin(dist: Any) -> None:
    """As many as come."""
    found = ["a", "b", "c"] if dist.get_rank() == 0 else [None] * 3
    dist.broadcast_object_list(found, src=0)
    assert found == ["a", "b", "c"]
