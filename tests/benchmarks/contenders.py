"""The same collective through the engine, a bare ProcessGroup and ``torch.distributed``, on the same memory."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import AllreduceOptions, BroadcastOptions, ProcessGroup, ReduceOp, ReduceScatterOptions

from collshim import Communicator
from collshim.transports.processes.gloo import all_gather_single, all_to_all_single, reduce_scatter_single
from tests.benchmarks.measure import Contender

OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")


def operands(op: str, nbytes: int, size: int) -> tuple[Tensor, Tensor]:
    """What a rank gives, ``nbytes`` of float32, and where its result goes.

    Zeros, which stay zeros however often they are summed in place; written, so that the pages are there.
    """
    count = max(1, nbytes // 4)
    if op in ("all_reduce", "broadcast"):
        given = _zeros(count)
        return given, given
    if op == "all_gather":
        return _zeros(count), _zeros(size, count)
    parts = _zeros(size, max(1, count // size))
    return parts, _zeros(*parts.shape) if op == "all_to_all" else _zeros(parts.shape[1])


def _zeros(*shape: int) -> Tensor:
    return torch.empty(shape).fill_(0.0)


def engine(comm: Communicator, op: str, given: Any, out: Any) -> Contender:
    """The engine, waited for at once; torch tensors or NumPy arrays."""
    calls: dict[str, Contender] = {
        "all_reduce": lambda: comm.all_reduce(given, out=out).wait(),
        "broadcast": lambda: comm.broadcast(given, out=out).wait(),
        "all_gather": lambda: comm.all_gather(given, out=out).wait(),
        "reduce_scatter": lambda: comm.reduce_scatter(given, out=out).wait(),
        "all_to_all": lambda: comm.all_to_all(given, out=out).wait(),
    }
    return calls[op]


def bare(group: ProcessGroup, op: str, given: Tensor, out: Tensor) -> Contender:
    """The ProcessGroup's own method, with its options, lists and flat views made before."""
    tensors, flat_given, flat_out = [given], given.view(-1), out.view(-1)
    reducing, rooted, scattering = AllreduceOptions(), BroadcastOptions(), ReduceScatterOptions()
    reducing.reduceOp = scattering.reduceOp = ReduceOp.SUM  # type: ignore[assignment]  # torch's stubs want another
    rooted.rootRank = 0
    no_splits: list[int] = []
    calls: dict[str, Contender] = {
        "all_reduce": lambda: group.allreduce(tensors, reducing).wait(),
        "broadcast": lambda: group.broadcast(tensors, rooted).wait(),
        "all_gather": lambda: all_gather_single(group, flat_out, given).wait(),
        "reduce_scatter": lambda: reduce_scatter_single(group, out, flat_given, scattering).wait(),
        "all_to_all": lambda: all_to_all_single(group, out, given, no_splits, no_splits).wait(),
    }
    return calls[op]


def torch_distributed(op: str, given: Tensor, out: Tensor) -> Contender:
    """``torch.distributed`` on its default group."""
    gather = _renamed("all_gather_single", "all_gather_into_tensor")
    scatter = _renamed("reduce_scatter_single", "reduce_scatter_tensor")
    flat_given, flat_out = given.view(-1), out.view(-1)
    calls: dict[str, Contender] = {
        "all_reduce": lambda: dist.all_reduce(given),
        "broadcast": lambda: dist.broadcast(given, 0),
        "all_gather": lambda: gather(flat_out, given),
        "reduce_scatter": lambda: scatter(out, flat_given),
        "all_to_all": lambda: dist.all_to_all_single(out, given),
    }
    return calls[op]


def _renamed(*names: str) -> Any:
    """A function of ``torch.distributed`` under the name of torch 2.13, or the one of before."""
    return next(getattr(dist, name) for name in names if hasattr(dist, name))
