"""mismatched object collective: rank 2 gathers objects where the others broadcast them.

blame: 2
"""

from __future__ import annotations

from typing import Any


def fault(dist: Any) -> None:
    """Two collectives of objects meet."""
    if dist.get_rank() == 2:
        dist.all_gather_object([None] * 3, "config")  # <- here
    else:
        dist.broadcast_object_list(["config"], src=0)


def twin(dist: Any) -> None:
    """Every rank broadcasts."""
    found = ["config"] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(found, src=0)
    assert found == ["config"]
