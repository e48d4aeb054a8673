"""Calls of functions that no binding differentiates, for the test of the transitions on docs/gradients.md.

Each takes one rank's input, in one dimension, and returns its result. A ring passes each rank's input to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as torchs
from torch import Tensor

import collshim
import collshim.megengine.distributed as mge
import collshim.mindspore as ms
import collshim.torch.distributed as dist
from collshim.megengine.functional.distributed import collective_comm, remote_recv, remote_send
from collshim.mindspore import ops
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication import init as init_mindspore
from collshim.torch.distributed.nn import functional

SIZE, ROOT, FACTOR = 3, 1, 2.5

Program = Callable[[Tensor, str], Any]


def enter(framework: str) -> None:
    """Initialize a rank."""
    if framework == "mindspore":
        init_mindspore()
    elif framework == "megengine":
        here = collshim.current()
        mge.init_process_group("localhost", 8000, here.size, here.rank, here.rank)
    else:
        dist.init_process_group("gloo")


def _next() -> int:
    return (collshim.current().rank + 1) % SIZE


def _last() -> int:
    return (collshim.current().rank - 1) % SIZE


def _premul() -> Any:
    return torchs._make_nccl_premul_sum(FACTOR)


def _send_and_receive(x: Tensor, op: str) -> Any:
    """Receive last, so that the backward first sends the gradient back."""
    sent = ops.Send(0, _next())(x)
    return ops.Receive(0, _last(), [len(x)], ms.float32)(x) + 0 * sent


def _neighbours(x: Tensor, op: str) -> Any:
    shapes = [tuple(x.shape)]
    return ops.NeighborExchange([_next()], [_last()], shapes, shapes, ms.float32)((x,))[0]


def _borders(x: Tensor, op: str) -> Any:
    """Get the last column of the neighbour on the left."""
    sends, receives = [-1] * 8, [-1] * 8
    sends[2], receives[6] = _next(), _last()
    exchange = ops.NeighborExchangeV2(sends, [0, 0, 0, 1], receives, [0, 0, 1, 0], "NCHW")
    return exchange(x.reshape(1, 1, 1, -1)).reshape(-1)


def _batch(x: Tensor, op: str) -> Any:
    batch = ops.BatchISendIRecv(["isend", "irecv"], [_next(), _last()], [list(x.shape)], [ms.float32])
    return batch((x,))[1]


def _remote(x: Tensor, op: str) -> Any:
    remote_send(x, _next())
    return remote_recv(_last(), inp=x)


def _parts(x: Tensor) -> list[Tensor]:
    return list(x.split(len(x) // SIZE))


def _counts(x: Tensor) -> list[int]:
    return [len(x) // SIZE] * SIZE


_TORCH, _FUNCTIONS = "torch.distributed.nn.functional.", "mindspore.communication.comm_func."
_PRIMITIVES, _MEGENGINE = "mindspore.ops.", "megengine.functional.distributed."
PROGRAMS: dict[str, Program] = {
    _TORCH + "all_reduce": lambda x, op: functional.all_reduce(x, _premul()),
    _TORCH + "reduce": lambda x, op: functional.reduce(x, ROOT, _premul()),
    _TORCH + "reduce_scatter": lambda x, op: functional.reduce_scatter(x.new_zeros(2), _parts(x), _premul()),
    _TORCH + "_all_gather_base": lambda x, op: functional._all_gather_base(x.new_zeros(SIZE * len(x)), x),
    _FUNCTIONS + "reduce": lambda x, op: comm_func.reduce(x, ROOT, op),
    _FUNCTIONS + "reduce_scatter_tensor": lambda x, op: comm_func.reduce_scatter_tensor(x, op)[0],
    _PRIMITIVES + "AllReduce": lambda x, op: ops.AllReduce(op)(x),
    _PRIMITIVES + "Reduce": lambda x, op: ops.Reduce(ROOT, op)(x),
    _PRIMITIVES + "ReduceScatter": lambda x, op: ops.ReduceScatter(op)(x),
    _PRIMITIVES + "ReduceScatterV": lambda x, op: ops.ReduceScatterV(op)(x, _counts(x)),
    _PRIMITIVES + "AllGatherV": lambda x, op: ops.AllGatherV()(x, [len(x)] * SIZE),
    _PRIMITIVES + "AlltoAllV": lambda x, op: ops.AlltoAllV()(x, _counts(x), _counts(x)),
    _PRIMITIVES + "AlltoAllVC": lambda x, op: ops.AlltoAllVC()(x, [_counts(x)] * SIZE),
    _PRIMITIVES + "Send": _send_and_receive,
    _PRIMITIVES + "Receive": _send_and_receive,
    _PRIMITIVES + "NeighborExchange": _neighbours,
    _PRIMITIVES + "NeighborExchangeV2": _borders,
    _PRIMITIVES + "BatchISendIRecv": _batch,
    _MEGENGINE + "collective_comm": lambda x, op: collective_comm(x, "ALL_REDUCE_SUM", mge.WORLD, None),
    _MEGENGINE + "remote_send": _remote,
    _MEGENGINE + "remote_recv": _remote,
}
