"""``mindspore.ops.operations.comm_ops``: all communication primitives (source: MindSpore 2.10.0)."""

from collshim.mindspore.ops.operations._collectives import (
    AllGather,
    AllReduce,
    AlltoAll,
    Barrier,
    ReduceOp,
    ReduceScatter,
)
from collshim.mindspore.ops.operations._messages import (
    BatchISendIRecv,
    NeighborExchange,
    NeighborExchangeV2,
    Receive,
    Send,
)
from collshim.mindspore.ops.operations._rooted import Broadcast, CollectiveGather, CollectiveScatter, Reduce
from collshim.mindspore.ops.operations._uneven import AllGatherV, AlltoAllV, AlltoAllVC, ReduceScatterV

__all__ = [
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Barrier",
    "BatchISendIRecv",
    "Broadcast",
    "CollectiveGather",
    "CollectiveScatter",
    "NeighborExchange",
    "NeighborExchangeV2",
    "Receive",
    "Reduce",
    "ReduceOp",
    "ReduceScatter",
    "ReduceScatterV",
    "Send",
]
