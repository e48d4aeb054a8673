"""Move each collective's data through a torch ProcessGroup, gloo's or NCCL's.

Data whose dtype a backend lacks is moved as bytes. Everything a call needs is prepared once, as a ``Transfer``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import AllgatherOptions

from collshim.calls import collective
from collshim.calls.call import Call
from collshim.calls.collective import Collective, Shape
from collshim.layout import Parts, cut, fill, flat, joined, listed
from collshim.torch_release import GLOO_EXCHANGES_LISTS
from collshim.transports.processes.backend import (
    Endpoint,
    Finish,
    Moving,
    Output,
    Transfer,
    Works,
    as_is,
    coalesce,
    movable_view,
)
from collshim.transports.processes.nccl.paired import PairedNccl
from collshim.transports.processes.port import Port
from collshim.transports.processes.reductions import all_reduce, fill_target, reduce, reduce_scatter


def transfer(call: Call, end: Endpoint) -> Transfer:
    """Return a function that starts moving the data of this call, and of every call like it."""
    return _TRANSFERS[call.collective](call, end)


def _carried_parts(carried: Callable[[Tensor], Tensor], parts: Parts) -> list[Tensor]:
    if type(parts) is list and carried is as_is:
        return parts
    return [*map(carried, listed(parts))]


def _broadcast(call: Call, end: Endpoint) -> Transfer:
    options, carried = end.options(dist.BroadcastOptions), movable_view(call.dtype)
    options.rootRank = call.root or 0

    def start(group: Port, source: Tensor | None, target: Output) -> Moving:
        if source is None:
            target = end.fresh() if target is None else target
        elif target is not source:
            target = fill_target(call, target, source)
        return target, group.broadcast([target if carried is as_is else carried(target)], options), None

    return start


def _all_gather(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_all_gather(call, end)
    gather, options = end.singles.all_gather, end.options(AllgatherOptions)
    carried, on_gpu = movable_view(call.dtype), call.device != "cpu"

    def start(group: Port, source: Tensor, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        if type(target) is Tensor and carried is as_is:
            stacked = not on_gpu and source.dim() != target.dim()  # gloo compares shapes, NCCL does not
            return target, gather(group, target, source.unsqueeze(0) if stacked else source, options), None
        whole = joined(target)
        if whole is None:
            if on_gpu and isinstance(group, PairedNccl):  # it splits lists into broadcasts, which match no other form
                whole, finish = _whole(listed(target), carried)
                return target, gather(group, whole, carried(source.view(-1)), options), finish
            if carried is as_is:
                return target, group.allgather([cast("list[Tensor]", target)], [source], options), None
            return target, group.allgather([_carried_parts(carried, target)], [carried(source)], options), None
        return target, gather(group, carried(whole), carried(source.view(-1)), options), None

    return start


def _ragged_all_gather(call: Call, end: Endpoint) -> Transfer:
    carried, options = movable_view(call.dtype), [end.options(dist.BroadcastOptions) for _ in range(end.size)]
    for owner, of_owner in enumerate(options):
        of_owner.rootRank = owner

    def start(group: Port, source: Tensor, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        parts = listed(target)
        parts[end.rank].copy_(source)
        given = zip(parts, options, strict=True)
        starts = [partial(group.broadcast, [carried(part)], of_owner) for part, of_owner in given]
        works, work = coalesce(group, source.device, starts)
        return target, work or Works(works), None

    return start


def _gather(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_gather(call, end)
    options, carried, is_root = end.options(dist.GatherOptions), movable_view(call.dtype), end.rank == call.root
    options.rootRank = call.root or 0

    def start(group: Port, source: Tensor, target: Output) -> Moving:
        target = end.fresh() if target is None and is_root else target
        parts = target.view(end.size, *source.shape) if type(target) is Tensor else target
        lists = [] if parts is None else [_carried_parts(carried, parts)]
        return target, group.gather(lists, [source if carried is as_is else carried(source)], options), None

    return start


def _ragged_gather(call: Call, end: Endpoint) -> Transfer:
    """Gather unequal parts by an all_to_all in which only the root receives anything."""
    exchange, options = end.singles.all_to_all, end.options(dist.AllToAllOptions)
    carried, is_root = movable_view(call.dtype), end.rank == call.root

    def start(group: Port, source: Tensor, target: Output) -> Moving:
        read = carried(source.view(-1))
        sends = _to_one(call.root or 0, read, end.size)
        if not is_root:
            return target, exchange(group, read.new_empty(0), read, [0] * end.size, sends, options), None
        target = end.fresh() if target is None else target
        written, finish = _whole(listed(target), carried)
        return target, exchange(group, written, read, _lengths(target, written), sends, options), finish

    return start


def _ragged_scatter(call: Call, end: Endpoint) -> Transfer:
    """Scatter unequal parts by an all_to_all in which only the root sends anything."""
    exchange, options, carried = end.singles.all_to_all, end.options(dist.AllToAllOptions), movable_view(call.dtype)

    def start(group: Port, source: Parts | None, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        written = carried(target.view(-1))
        takes = _to_one(call.root or 0, written, end.size)
        read = written.new_empty(0) if source is None else carried(flat(source))
        sends = [0] * end.size if source is None else _lengths(source, read)
        return target, exchange(group, written, read, takes, sends, options), None

    return start


def _to_one(rank: int, data: Tensor, size: int) -> list[int]:
    return [data.numel() if peer == rank else 0 for peer in range(size)]


def _whole(parts: Sequence[Tensor], carried: Callable[[Tensor], Tensor]) -> tuple[Tensor, Finish | None]:
    """Return one tensor to receive these parts in, and a function that then copies it to them if they are apart."""
    whole = joined(parts)
    if whole is not None:
        return carried(whole), None
    buffer = parts[0].new_empty(sum(part.numel() for part in parts))
    return carried(buffer), partial(fill, parts=cut(buffer, [part.shape for part in parts]))


def _scatter(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_scatter(call, end)
    options, carried = end.options(dist.ScatterOptions), movable_view(call.dtype)
    options.rootRank = call.root or 0

    def start(group: Port, source: Parts | None, target: Output) -> Moving:
        target = end.fresh() if target is None else target
        lists = [] if source is None else [_carried_parts(carried, source)]
        return target, group.scatter([target if carried is as_is else carried(target)], lists, options), None

    return start


def _all_to_all(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_all_to_all(call, end)
    exchange, options, carried = end.singles.all_to_all, end.options(dist.AllToAllOptions), movable_view(call.dtype)

    def start(group: Port, source: Parts, target: Output) -> Moving:
        if type(source) is Tensor and type(target) is Tensor and carried is as_is:
            return target, exchange(group, target, source, [], [], options), None
        if GLOO_EXCHANGES_LISTS and type(source) is list and type(target) is list:
            if carried is as_is:
                return target, group.alltoall(target, source, options), None
            return target, group.alltoall([*map(carried, target)], [*map(carried, source)], options), None
        target = end.fresh() if target is None else target
        given = source if type(source) is Tensor else joined(source)
        taken = target if type(target) is Tensor else joined(target)
        given = torch.stack(listed(source)) if given is None else given
        if taken is not None:
            return target, exchange(group, carried(taken), carried(given), [], [], options), None
        buffer = given.new_empty((end.size, *target[0].shape))
        return target, exchange(group, carried(buffer), carried(given), [], [], options), partial(fill, parts=buffer)

    return start


def _ragged_all_to_all(call: Call, end: Endpoint) -> Transfer:
    exchange, options, carried = end.singles.all_to_all, end.options(dist.AllToAllOptions), movable_view(call.dtype)
    rows = [[shape[0] for shape in shapes if shape] for shapes in (call.expects or (), call.sends or ())]
    taken, given = map(sum, rows)

    def start(group: Port, source: Parts, target: Output) -> Moving:
        if type(source) is Tensor and type(target) is Tensor and carried is as_is:
            lie_along_axis_0 = target.shape[:1] == (taken,) and source.shape[:1] == (given,)
            if lie_along_axis_0:
                return target, exchange(group, target, source, *rows, options), None
        target = _parts(target, call.expects) or end.fresh()
        source = _parts(source, call.sends)
        written, finish = _whole(target, carried)
        read = carried(flat(source))
        work = exchange(group, written, read, _lengths(target, written), _lengths(source, read), options)
        return target, work, finish

    return start


def _parts(parts: Output, shapes: Sequence[Shape] | None) -> Output:
    """Return parts as a list, cutting them if they lie end to end in one tensor."""
    return cut(parts.view(-1), shapes or ()) if type(parts) is Tensor else parts


def _lengths(parts: Parts, carried: Tensor) -> list[int]:
    """Return the number of elements per peer, in the dtype that is moved."""
    return [part.nbytes // carried.element_size() for part in listed(parts)]


_TRANSFERS: dict[Collective, Callable[[Call, Endpoint], Transfer]] = {
    collective.ALL_REDUCE: all_reduce,
    collective.REDUCE: reduce,
    collective.REDUCE_SCATTER: reduce_scatter,
    collective.BROADCAST: _broadcast,
    collective.ALL_GATHER: _all_gather,
    collective.GATHER: _gather,
    collective.SCATTER: _scatter,
    collective.ALL_TO_ALL: _all_to_all,
}
