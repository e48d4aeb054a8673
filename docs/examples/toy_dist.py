"""``store_dist`` with a mistake, an average is the sum: docs/conformance.md shows how the suite reports it."""

from __future__ import annotations

from typing import Any

import store_dist
from store_dist import ReduceOp, all_gather, barrier, init_process_group, is_initialized, new_group

__all__ = ["ReduceOp", "all_gather", "all_reduce", "barrier", "init_process_group", "is_initialized", "new_group"]


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Every rank's tensor holds the sum of all ranks' tensors, even if ``op`` is the average."""
    return store_dist.all_reduce(tensor, ReduceOp.SUM if op == ReduceOp.AVG else op, group, async_op)
