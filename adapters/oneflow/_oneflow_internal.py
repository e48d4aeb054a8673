"""The few names of OneFlow's compiled module that programs use."""

from __future__ import annotations

from collshim.oneflow.comm import barrier as _barrier
from collshim.oneflow.comm.arguments import world_communicator
from collshim.oneflow.env import get_local_rank, get_node_size, get_rank, get_world_size
from collshim.oneflow.framework.tensor import Tensor as Tensor

GetRank = get_rank
GetWorldSize = get_world_size
GetLocalRank = get_local_rank
GetNodeSize = get_node_size


def max_alignment_size() -> int:
    """Return the alignment of OneFlow 0.9.0's memory, in bytes."""
    return 512


def cpu_broadcast(data: bytes | None, src: int) -> bytes:
    """Return rank ``src``'s bytes, on every rank."""
    received: bytes = world_communicator().broadcast_object(data, src).wait()
    return received


class eager:
    """The functions that wait for other ranks."""

    @staticmethod
    def Sync() -> None:
        """Do nothing: there is nothing to wait for."""

    @staticmethod
    def ClusterSync() -> None:
        """Wait until every rank has called this."""
        _barrier()
