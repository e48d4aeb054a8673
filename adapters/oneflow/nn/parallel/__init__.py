"""``oneflow.nn.parallel``: DistributedDataParallel, a function that returns the module passed to it."""

from __future__ import annotations

from collshim.oneflow.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
