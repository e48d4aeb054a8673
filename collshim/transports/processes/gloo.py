"""How each collective's data travels through a torch ProcessGroup, gloo's or NCCL's.

Data movement that a backend has no type for goes as bytes; a reduction that it cannot do exactly is gathered and done
here in rank order. What a call needs is prepared once, as a ``Transfer``. Method names that torch changed in 2.13 are
looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup, ReduceOp

from collshim.arithmetic import reducer, scaled
from collshim.calls import collective
from collshim.calls.call import Call
from collshim.calls.collective import Collective, Shape
from collshim.layout import Parts, as_bytes, cut, fill, flat, joined, listed
from collshim.transports.processes.polling import FLOATS, INTEGERS, MOVABLE, Works, receive, send

Finish = Callable[[Any], Any]
Moving = tuple[Any, Any, "Finish | None"]
"""Data on its way: the outputs, torch's work, and what is left to do with the outputs once the work is over."""

Transfer = Callable[[Any, Any, Any], Moving]
"""Puts data on its way: from a ProcessGroup, inputs, and outputs or None for fresh memory."""


def _method(*names: str) -> Callable[..., Any]:
    method: Callable[..., Any] = next(getattr(ProcessGroup, name) for name in names if hasattr(ProcessGroup, name))
    return method


all_gather_single = _method("all_gather_single", "_allgather_base")
reduce_scatter_single = _method("reduce_scatter_single", "_reduce_scatter_base")
all_to_all_single = _method("all_to_all_single", "alltoall_base")

SCATTERS_SUMS_ALONE = not hasattr(ProcessGroup, "reduce_scatter_single")
"""Whether gloo's reduce_scatter adds, whatever the operation is: so in torch 2.6, and not in 2.13."""

EXCHANGES_LISTS = not SCATTERS_SUMS_ALONE
"""Whether gloo's alltoall takes lists, of equal shapes: so in torch 2.13, and not in 2.6."""

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
"""On their bytes, 0 and 1."""

_RAGGED_TAG = 2**31 - 2
"""Out of the way of users' tags, and of the numbers of the transport's own messages."""


class Endpoint(NamedTuple):
    """One rank's end of a call.

    Attributes:
        fresh: makes memory for a result without an ``out``.
        ragged: whether some rank's parts may be unequal, as all ranks know.
    """

    rank: int
    size: int
    fresh: Callable[[], Any]
    ragged: bool


def transfer(call: Call, end: Endpoint) -> Transfer:
    """What puts the data of a call, and of every call like it, on its way."""
    return _TRANSFERS[call.collective](call, end)


def _is_native(call: Call) -> bool:
    """Whether gloo and NCCL both reduce this dtype with this operation as collshim defines it."""
    if call.dtype is torch.bool:
        return call.reduce_op in _OF_BOOLEANS
    if call.reduce_op in ("band", "bor", "bxor"):
        return call.dtype in INTEGERS and call.device == "cpu"
    if call.dtype in (torch.complex64, torch.complex128):
        return call.reduce_op in ("sum", "avg")
    return call.dtype in FLOATS | INTEGERS


def _native_op(call: Call) -> Any:
    return (_OF_BOOLEANS if call.dtype is torch.bool else _NATIVE_OPS)[call.reduce_op or "sum"]


def _as_is(tensor: Tensor) -> Tensor:
    return tensor


def _carrier(dtype: torch.dtype | None) -> Callable[[Tensor], Tensor]:
    """A view in a dtype that every backend moves."""
    return _as_is if dtype in MOVABLE else as_bytes


def _carried_parts(carried: Callable[[Tensor], Tensor], parts: Parts) -> list[Tensor]:
    if type(parts) is list and carried is _as_is:
        return parts
    return [*map(carried, listed(parts))]


def _summand(dtype: torch.dtype | None) -> Callable[[Tensor], Tensor] | None:
    """A view that reduces to the same, where one is needed: no NCCL, nor every release's gloo, adds complex numbers."""
    if dtype is torch.bool:
        return lambda tensor: tensor.view(torch.uint8)
    return torch.view_as_real if dtype is not None and dtype.is_complex else None


def _divided(call: Call, size: int) -> Finish | None:
    """What makes an average of a sum."""
    if call.reduce_op != "avg" or call.dtype is None:
        return None
    if call.dtype.is_floating_point or call.dtype.is_complex:
        return lambda target: target.div_(size)
    return lambda target: target.div_(size, rounding_mode="trunc")


def _filled(call: Call, target: Tensor | None, source: Tensor) -> Tensor:
    """The place of a reduction, which is done in place, with this rank's summand."""
    if target is None:
        target = source.clone()
    elif target is not source and target.data_ptr() != source.data_ptr():
        target.copy_(source)
    return target if call.factor is None else target.copy_(scaled(target, call.factor))


def _all_reduce(call: Call, end: Endpoint) -> Transfer:
    if not _is_native(call):
        return _gathered_reduce(call, end)
    summand, finish = _summand(call.dtype), _divided(call, end.size)
    options, of_several, is_scaled = dist.AllreduceOptions(), dist.AllreduceCoalescedOptions(), call.factor is not None
    options.reduceOp = of_several.reduceOp = _native_op(call)

    def start(group: Any, source: Any, target: Any) -> Moving:
        if type(source) is list:
            return target, group.allreduce_coalesced(target, of_several), None
        if is_scaled or (target is not None and target is not source):
            target = _filled(call, target, source)
        elif target is None:
            target = source.clone()
        return target, group.allreduce([target if summand is None else summand(target)], options), finish

    return start


def _gathered_reduce(call: Call, end: Endpoint) -> Transfer:
    """Every rank gets all ranks' tensors, and reduces them where it gets a result."""
    carried, gets = _carrier(call.dtype), call.collective.gets_on(end.rank, call.root)
    reduces = reducer(call.dtype or torch.float32, call.reduce_op or "sum", call.factor)

    def start(group: Any, source: Tensor, target: Tensor | None) -> Moving:
        everything = source.new_empty((end.size, *source.shape))
        finish = partial(reduces, everything.unbind(0)) if gets else None
        if target is None and gets:
            target = torch.empty_like(source)
        return target, all_gather_single(group, carried(everything.view(-1)), carried(source.view(-1))), finish

    return start


def _reduce(call: Call, end: Endpoint) -> Transfer:
    if not _is_native(call):
        return _gathered_reduce(call, end)
    options, summand, is_root = dist.ReduceOptions(), _summand(call.dtype), end.rank == call.root
    options.reduceOp, options.rootRank = _native_op(call), call.root or 0
    finish = _divided(call, end.size) if is_root else None

    def start(group: Any, source: Tensor, target: Tensor | None) -> Moving:
        if target is None or target is not source or call.factor is not None:
            target = _filled(call, target, source)  # off the root too, where gloo leaves partial sums
        work = group.reduce([target if summand is None else summand(target)], options)
        return target if is_root else None, work, finish

    return start


def _reduce_scatter(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_reduce_scatter(call, end)
    sums_alone = SCATTERS_SUMS_ALONE and call.device == "cpu" and call.reduce_op not in ("sum", "avg")
    if not _is_native(call) or call.factor is not None or sums_alone:
        return _exchanged_reduce(call, end)
    options, summand, finish = dist.ReduceScatterOptions(), _summand(call.dtype), _divided(call, end.size)
    options.reduceOp = _native_op(call)

    def start(group: Any, source: Parts, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        whole = source if type(source) is Tensor else torch.stack(listed(source))
        part = target if target.dim() == whole.dim() else target[None]
        if summand is not None:
            whole, part = summand(whole), summand(part)
        return target, reduce_scatter_single(group, part, whole, options), finish

    return start


def _ragged_reduce_scatter(call: Call, end: Endpoint) -> Transfer:
    reductions = [_reduce(call._replace(op="reduce", root=owner), end) for owner in range(end.size)]

    def start(group: Any, source: Parts, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        moving = [
            reduction(group, part, target if owner == end.rank else None)
            for owner, (reduction, part) in enumerate(zip(reductions, listed(source), strict=True))
        ]
        return target, Works([work for _, work, _ in moving]), moving[end.rank][2]

    return start


def _exchanged_reduce(call: Call, end: Endpoint) -> Transfer:
    """Every rank gets its part of all ranks, and reduces them."""
    carried = _carrier(call.dtype)
    reduces = reducer(call.dtype or torch.float32, call.reduce_op or "sum", call.factor)

    def start(group: Any, source: Parts, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        parts = target.new_empty((end.size, *target.shape))
        work = all_to_all_single(group, carried(parts.view(-1)), carried(flat(source)), [], [])
        return target, work, partial(reduces, parts.unbind(0))

    return start


def _broadcast(call: Call, end: Endpoint) -> Transfer:
    options, carried = dist.BroadcastOptions(), _carrier(call.dtype)
    options.rootRank = call.root or 0

    def start(group: Any, source: Tensor | None, target: Any) -> Moving:
        if source is None:
            target = end.fresh() if target is None else target
        elif target is not source:
            target = _filled(call, target, source)
        return target, group.broadcast([carried(target)], options), None

    return start


def _all_gather(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_all_gather(call, end)
    carried = _carrier(call.dtype)

    def start(group: Any, source: Tensor, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        if type(target) is Tensor and carried is _as_is:
            part = source if source.dim() == target.dim() else source[None]
            return target, all_gather_single(group, target, part), None
        whole = joined(target)
        if whole is None:
            if carried is _as_is:
                return target, group.allgather([target], [source]), None
            return target, group.allgather([_carried_parts(carried, target)], [carried(source)]), None
        return target, all_gather_single(group, carried(whole), carried(source.view(-1))), None

    return start


def _ragged_all_gather(call: Call, end: Endpoint) -> Transfer:
    carried = _carrier(call.dtype)

    def start(group: Any, source: Tensor, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        parts = listed(target)
        parts[end.rank].copy_(source)
        return target, Works([group.broadcast(carried(part), owner) for owner, part in enumerate(parts)]), None

    return start


def _gather(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_gather_or_scatter(call, end)
    options, carried, is_root = dist.GatherOptions(), _carrier(call.dtype), end.rank == call.root
    options.rootRank = call.root or 0

    def start(group: Any, source: Tensor, target: Any) -> Moving:
        target = end.fresh() if target is None and is_root else target
        parts = target.view(end.size, *source.shape) if type(target) is Tensor else target
        lists = [] if parts is None else [_carried_parts(carried, parts)]
        return target, group.gather(lists, [carried(source)], options), None

    return start


def _ragged_gather_or_scatter(call: Call, end: Endpoint) -> Transfer:
    """Unequal parts between the root and each other rank, one message each."""
    root, gathers = call.root or 0, call.collective is collective.GATHER
    gets = call.collective.gets_on(end.rank, root)
    of_root, of_others = (receive, send) if gathers else (send, receive)

    def start(group: Any, source: Any, target: Any) -> Moving:
        if gets:
            target = end.fresh() if target is None else target
        parts, own = (target, source) if gathers else (source, target)
        if end.rank != root:
            return target, Works([of_others(group, own, root, _RAGGED_TAG)]), None
        parts = listed(parts)
        (parts[root] if gathers else own).copy_(own if gathers else parts[root])
        others = [(peer, part) for peer, part in enumerate(parts) if peer != root]
        return target, Works([of_root(group, part, peer, _RAGGED_TAG) for peer, part in others]), None

    return start


def _scatter(call: Call, end: Endpoint) -> Transfer:
    if end.ragged:
        return _ragged_gather_or_scatter(call, end)
    options, carried = dist.ScatterOptions(), _carrier(call.dtype)
    options.rootRank = call.root or 0

    def start(group: Any, source: Parts | None, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        lists = [] if source is None else [_carried_parts(carried, source)]
        return target, group.scatter([carried(target)], lists, options), None

    return start


def _all_to_all(call: Call, end: Endpoint) -> Transfer:
    if end.ragged and not call.is_uniform:
        return _ragged_all_to_all(call, end)
    carried = _carrier(call.dtype)

    def start(group: Any, source: Parts, target: Any) -> Moving:
        target = end.fresh() if target is None else target
        given = source if type(source) is Tensor else joined(source)
        taken = target if type(target) is Tensor else joined(target)
        if given is None and taken is None and EXCHANGES_LISTS:
            return target, group.alltoall(_carried_parts(carried, target), _carried_parts(carried, source)), None
        given = torch.stack(listed(source)) if given is None else given
        if taken is not None:
            return target, all_to_all_single(group, carried(taken), carried(given), [], []), None
        buffer = given.new_empty((end.size, *target[0].shape))
        return target, all_to_all_single(group, carried(buffer), carried(given), [], []), partial(fill, parts=buffer)

    return start


def _ragged_all_to_all(call: Call, end: Endpoint) -> Transfer:
    carried = _carrier(call.dtype)
    rows = [[shape[0] for shape in shapes if shape] for shapes in (call.expects or (), call.sends or ())]

    def start(group: Any, source: Parts, target: Any) -> Moving:
        if type(source) is Tensor and type(target) is Tensor and carried is _as_is:  # cut along axis 0
            return target, all_to_all_single(group, target, source, *rows), None
        target = _parts(target, call.expects) or end.fresh()
        source = _parts(source, call.sends)
        whole = joined(target)
        buffer = target[0].new_empty(sum(part.numel() for part in target)) if whole is None else whole
        written, read = carried(buffer), carried(flat(source))
        work = all_to_all_single(group, written, read, _lengths(target, written), _lengths(source, read))
        shapes = [part.shape for part in target]
        return target, work, None if whole is not None else partial(fill, parts=cut(buffer, shapes))

    return start


def _parts(parts: Any, shapes: Sequence[Shape] | None) -> Any:
    """Parts that may lie end to end in one tensor, as a list."""
    return cut(parts.view(-1), shapes or ()) if type(parts) is Tensor else parts


def _lengths(parts: Parts, carried: Tensor) -> list[int]:
    """Elements per peer, counted in what travels."""
    return [part.nbytes // carried.element_size() for part in listed(parts)]


_TRANSFERS: dict[Collective, Callable[[Call, Endpoint], Transfer]] = {
    collective.ALL_REDUCE: _all_reduce,
    collective.REDUCE: _reduce,
    collective.REDUCE_SCATTER: _reduce_scatter,
    collective.BROADCAST: _broadcast,
    collective.ALL_GATHER: _all_gather,
    collective.GATHER: _gather,
    collective.SCATTER: _scatter,
    collective.ALL_TO_ALL: _all_to_all,
}
