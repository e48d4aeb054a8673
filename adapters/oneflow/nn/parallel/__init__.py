"""``oneflow.nn.parallel``: DistributedDataParallel, a function that returns the module it was given."""

from __future__ import annotations

from collshim.oneflow.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
