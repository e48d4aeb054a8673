"""Reduce with a backend that reduces as collshim defines it, or by gathering and reducing here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import AllgatherOptions
from torch.distributed import ReduceOp

from collshim.accelerator import ACCELERATOR
from collshim.arrays.arithmetic import BITWISE, scaled
from collshim.arrays.dtypes import NATIVE_INTEGERS, NATIVE_NUMBERS
from collshim.calls.call import Call
from collshim.calls.collective import REDUCE
from collshim.layout import Parts, flat, listed
from collshim.transports.compute import reducer_of
from collshim.transports.processes.backend import (
    Endpoint,
    Finish,
    Moving,
    Output,
    Transfer,
    Works,
    coalesce,
    movable_view,
)
from collshim.transports.processes.port import Port

_PAIR = 2
_NATIVE_OPS: dict[str, Any] = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.SUM,
    "premul_sum": ReduceOp.SUM,
    "prod": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR,
    "bxor": ReduceOp.BXOR,
}
_OF_BOOLEANS: dict[str, Any] = {
    "sum": ReduceOp.MAX,
    "max": ReduceOp.MAX,
    "bor": ReduceOp.MAX,
    "prod": ReduceOp.MIN,
    "min": ReduceOp.MIN,
    "band": ReduceOp.MIN,
}
"""The operations on booleans, applied to their bytes, 0 and 1."""


def _is_native(call: Call) -> bool:
    """Return whether gloo and NCCL both reduce this dtype with this operation as collshim defines it."""
    if call.dtype is torch.bool:
        return call.reduce_op in _OF_BOOLEANS
    if call.reduce_op in BITWISE:
        return call.dtype in NATIVE_INTEGERS and call.device == "cpu"
    if call.dtype in (torch.complex64, torch.complex128):
        return call.reduce_op in ("sum", "avg")
    return call.dtype in NATIVE_NUMBERS


def _averages(call: Call) -> bool:
    """Return whether the backend averages: NCCL does, and multiplies before it adds, so that no sum overflows."""
    is_float = call.dtype is not None and (call.dtype.is_floating_point or call.dtype.is_complex)
    return call.reduce_op == "avg" and call.device == ACCELERATOR and is_float


def _native_op(call: Call) -> Any:
    ops = _OF_BOOLEANS if call.dtype is torch.bool else _NATIVE_OPS
    return ReduceOp.AVG if _averages(call) else ops[call.reduce_op or "sum"]


def _summand(dtype: torch.dtype | None) -> Callable[[Tensor], Tensor] | None:
    """Return an equivalent view, if one is needed: NCCL and some releases' gloo cannot add complex numbers."""
    if dtype is torch.bool:
        return lambda tensor: tensor.view(torch.uint8)
    return torch.view_as_real if dtype is not None and dtype.is_complex else None


def _divider(call: Call, size: int) -> Finish | None:
    """Return a function that turns a sum into an average, if the call needs one."""
    if call.reduce_op != "avg" or call.dtype is None or _averages(call):
        return None
    if call.dtype.is_floating_point or call.dtype.is_complex:
        return _hide_change(lambda target: target.div_(size))
    return _hide_change(lambda target: target.div_(size, rounding_mode="trunc"))


def _hide_change(finish: Finish) -> Finish:
    """Hide the change of the output from autograd's version counter, which ignores a backend's changes too."""
    return lambda target: finish(target.data)


def fill_target(call: Call, target: Tensor | None, source: Tensor) -> Tensor:
    """Return the memory of an in-place reduction, filled with this rank's summand."""
    if target is None:
        target = source.clone()
    elif target is not source and target.data_ptr() != source.data_ptr():
        target.copy_(source)
    return target if call.factor is None else target.copy_(scaled(target, call.factor))


def all_reduce(call: Call, end: Endpoint) -> Transfer:
    """Return a function that starts an all_reduce."""
    if not _is_native(call):
        return _reduce_gathered(call, end)
    summand, finish = _summand(call.dtype), _divider(call, end.size)
    options, of_several = end.options(dist.AllreduceOptions), end.options(dist.AllreduceCoalescedOptions)
    is_scaled = call.factor is not None
    options.reduceOp = of_several.reduceOp = _native_op(call)

    def start(group: Port, source: Output, target: Output) -> Moving:
        if type(source) is list:
            return target, group.allreduce_coalesced(target, of_several), None
        if is_scaled or (target is not None and target is not source):
            target = fill_target(call, target, source)
        elif target is None:
            target = source.clone()
        return target, group.allreduce([target if summand is None else summand(target)], options), finish

    return start


def _reduce_gathered(call: Call, end: Endpoint) -> Transfer:
    """Gather all ranks' tensors, and reduce them on each rank that receives a result."""
    gather, options = end.singles.all_gather, end.options(AllgatherOptions)
    carried, gets = movable_view(call.dtype), call.collective.gets_on(end.rank, call.root)
    reduces = reducer_of(call)

    def start(group: Port, source: Tensor, target: Tensor | None) -> Moving:
        everything = source.new_empty((end.size, *source.shape))
        finish = _hide_change(partial(reduces, everything.unbind(0))) if gets else None
        if target is None and gets:
            target = torch.empty_like(source)
        return target, gather(group, carried(everything.view(-1)), carried(source.view(-1)), options), finish

    return start


def reduce(call: Call, end: Endpoint) -> Transfer:
    """Return a function that starts a reduce."""
    if end.size == _PAIR and call.device == "cpu":
        return _reduce_of_a_pair(call, end)
    if not _is_native(call):
        return _reduce_gathered(call, end)
    options, summand, is_root = end.options(dist.ReduceOptions), _summand(call.dtype), end.rank == call.root
    options.reduceOp, options.rootRank = _native_op(call), call.root or 0
    finish = _divider(call, end.size) if is_root else None

    def start(group: Port, source: Tensor, target: Tensor | None) -> Moving:
        if target is None or target is not source or call.factor is not None:
            target = fill_target(call, target, source)  # also on other ranks, where gloo leaves partial sums
        work = group.reduce([target if summand is None else summand(target)], options)
        return target if is_root else None, work, finish

    return start


def _reduce_of_a_pair(call: Call, end: Endpoint) -> Transfer:
    """Send the other rank's tensor to the root of two, and reduce there; gloo's reduce would overwrite the other's."""
    options, carried, is_root = end.options(dist.BroadcastOptions), movable_view(call.dtype), end.rank == call.root
    options.rootRank = 1 - (call.root or 0)
    reduces = reducer_of(call)

    def start(group: Port, source: Tensor, target: Tensor | None) -> Moving:
        if not is_root:
            return None, group.broadcast([carried(source.view(-1))], options), None
        other = torch.empty_like(source)
        parts = [other, source] if end.rank else [source, other]
        work = group.broadcast([carried(other.view(-1))], options)
        return other if target is None else target, work, _hide_change(partial(reduces, parts))

    return start


def reduce_scatter(call: Call, end: Endpoint) -> Transfer:
    """Return a function that starts a reduce_scatter."""
    if end.ragged:
        return _ragged_reduce_scatter(call, end)
    if call.device == "cpu" or not _is_native(call) or call.factor is not None:
        return _reduce_exchanged(call, end)
    return _reduce_scatter_on_cuda(call, end)


def _reduce_scatter_on_cuda(call: Call, end: Endpoint) -> Transfer:
    options, summand, finish = end.options(dist.ReduceScatterOptions), _summand(call.dtype), _divider(call, end.size)
    options.reduceOp, scatter = _native_op(call), end.singles.reduce_scatter

    def start(group: Port, source: Parts, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        whole = source if type(source) is Tensor else torch.stack(listed(source))
        part = target if target.dim() == whole.dim() else target.unsqueeze(0)
        if summand is not None:
            whole, part = summand(whole), summand(part)
        return target, scatter(group, part, whole, options), finish

    return start


def _ragged_reduce_scatter(call: Call, end: Endpoint) -> Transfer:
    reductions = [reduce(call._replace(collective=REDUCE, root=owner), end) for owner in range(end.size)]

    def start(group: Port, source: Parts, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        outputs = [target if owner == end.rank else None for owner in range(end.size)]
        given = zip(reductions, listed(source), outputs, strict=True)
        starts = [partial(reduction, group, part, output) for reduction, part, output in given]
        moving, work = coalesce(group, target.device, starts)
        return target, work or Works([work for _, work, _ in moving]), moving[end.rank][2]

    return start


def _reduce_exchanged(call: Call, end: Endpoint) -> Transfer:
    """Exchange parts, so that every rank receives its part from all ranks, and reduce them.

    torch's reduce_scatter over gloo is an all_reduce of everything: it sends twice as much, and never reports that it
    is complete.
    """
    exchange, options, carried = end.singles.all_to_all, end.options(dist.AllToAllOptions), movable_view(call.dtype)
    reduces = reducer_of(call)

    def start(group: Port, source: Parts, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        parts = target.new_empty((end.size, *target.shape))
        work = exchange(group, carried(parts.view(-1)), carried(flat(source)), [], [], options)
        return target, work, partial(reduces, parts.unbind(0))

    return start
