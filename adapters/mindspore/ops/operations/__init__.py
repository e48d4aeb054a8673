"""``mindspore.ops.operations``: the primitives (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.mindspore._absent import saying
from collshim.mindspore.ops.functions import Add, Cast, Depend, MatMul, Mul, Reshape
from collshim.mindspore.ops.operations import comm_ops
from collshim.mindspore.ops.operations.comm_ops import (
    AllGather,
    AllGatherV,
    AllReduce,
    AlltoAll,
    AlltoAllV,
    AlltoAllVC,
    Barrier,
    BatchISendIRecv,
    Broadcast,
    CollectiveGather,
    CollectiveScatter,
    NeighborExchange,
    NeighborExchangeV2,
    Receive,
    Reduce,
    ReduceOp,
    ReduceScatter,
    ReduceScatterV,
    Send,
)

__all__ = [
    "Add",
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Barrier",
    "BatchISendIRecv",
    "Broadcast",
    "Cast",
    "CollectiveGather",
    "CollectiveScatter",
    "Depend",
    "MatMul",
    "Mul",
    "NeighborExchange",
    "NeighborExchangeV2",
    "Receive",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "ReduceScatterV",
    "Reshape",
    "Send",
    "comm_ops",
]

__getattr__ = saying(__name__, "the collectives, Add, Cast, Depend, MatMul, Mul and Reshape")
