"""``torch.distributed.nn`` over collshim: the differentiable collectives of ``functional``; the rest is torch's own."""

from __future__ import annotations

from typing import Any

from collshim.torch.distributed.nn import functional as functional
from collshim.torch.distributed.nn.functional import (
    ReduceOp,
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    group,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "ReduceOp",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "group",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def __getattr__(name: str) -> Any:
    from torch.distributed import nn  # imported late: it keeps the default group that exists at its import

    return getattr(nn, name)
