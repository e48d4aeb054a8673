"""``oneflow.comm.comm_ops``: OneFlow 0.9.0's module of the functions of ``oneflow.comm``."""

from __future__ import annotations

from collshim.oneflow.comm.movement import all_gather, all_gather_into_tensor, all_to_all, broadcast, gather, scatter
from collshim.oneflow.comm.point_to_point import barrier
from collshim.oneflow.comm.reductions import all_reduce, reduce, reduce_scatter, reduce_scatter_tensor

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]
