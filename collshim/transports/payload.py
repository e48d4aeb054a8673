"""How each collective's data travels through a torch ProcessGroup, gloo's or NCCL's.

Data movement that a backend has no type for goes as bytes; a reduction that it cannot do exactly is gathered and done
here in rank order. Method names that torch changed in 2.13 are looked up once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import GatherOptions, ProcessGroup, ReduceOp, ReduceScatterOptions, ScatterOptions

from collshim.arithmetic import reduce_into, scaled
from collshim.call import Call
from collshim.layout import Parts, cut, fill, flat, joined, listed
from collshim.transports.plain import FLOATS, INTEGERS
from collshim.transports.point_to_point import PointToPoint
from collshim.transports.slots import as_bytes

Finish = Callable[[], Any]


class Payload(NamedTuple):
    """Data on its way: torch's works, and what is left to do once they are over."""

    works: list[Any]
    finish: Finish | None = None


def _method(*names: str) -> Callable[..., Any]:
    found: Callable[..., Any] = next(getattr(ProcessGroup, name) for name in names if hasattr(ProcessGroup, name))
    return found


all_gather_single = _method("all_gather_single", "_allgather_base")
reduce_scatter_single = _method("reduce_scatter_single", "_reduce_scatter_base")
all_to_all_single = _method("all_to_all_single", "alltoall_base")

SCATTERS_SUMS_ALONE = not hasattr(ProcessGroup, "reduce_scatter_single")
"""Whether gloo's reduce_scatter adds, whatever the operation is: so in torch 2.6, and not in 2.13."""

_NATIVE_OPS = {
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
_MOVABLE = FLOATS | INTEGERS


class Ends(NamedTuple):
    """One rank's end of a call: where it sits, and whether the ranks' parts may be unequal, which all of them know."""

    group: ProcessGroup
    rank: int
    size: int
    ragged: bool


def start(ends: Ends, call: Call, source: Parts | None, target: Parts | None) -> Payload:
    """Put the data of a call on its way; source and target are contiguous, what ``Transport.post`` was given."""
    return _STARTS[call.op](ends, call, source, target)


def _native(call: Call) -> bool:
    """Whether gloo and NCCL both reduce this dtype with this operation as collshim defines it."""
    if call.reduce_op in ("band", "bor", "bxor"):
        return call.dtype in INTEGERS and call.device == "cpu"
    if call.dtype in (torch.complex64, torch.complex128):
        return call.reduce_op in ("sum", "avg")
    return call.dtype in _MOVABLE


def _carried(tensor: Tensor) -> Tensor:
    """A flat view in a dtype that every backend moves."""
    return tensor.view(-1) if tensor.dtype in _MOVABLE else as_bytes(tensor)


def _summands(tensor: Tensor) -> Tensor:
    """A flat view that reduces to the same; not every release's gloo, and no NCCL, adds complex numbers."""
    return torch.view_as_real(tensor).view(-1) if tensor.is_complex() else tensor.view(-1)


def _prepare(call: Call, target: Tensor, source: Tensor) -> None:
    """The reduction happens in place of the target."""
    if target.data_ptr() != source.data_ptr() or target.numel() == 0:
        target.copy_(source)
    if call.reduce_op == "premul_sum":
        target.copy_(scaled(target, call.factor))


def _averaged(call: Call, target: Tensor, size: int) -> Finish | None:
    if call.reduce_op != "avg":
        return None
    rounding = None if target.is_floating_point() or target.is_complex() else "trunc"
    return partial(target.div_, size, rounding_mode=rounding)


def _all_reduce(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    if not _native(call):
        return _gathered_reduce(ends, call, source, target)
    _prepare(call, target, source)
    work = ends.group.allreduce(_summands(target), _NATIVE_OPS[call.reduce_op or "sum"])
    return Payload([work], _averaged(call, target, ends.size))


def _gathered_reduce(ends: Ends, call: Call, source: Tensor, target: Tensor | None) -> Payload:
    everything = source.new_empty((ends.size, *source.shape))
    work = all_gather_single(ends.group, _carried(everything), _carried(source))
    if target is None:
        return Payload([work])
    return Payload([work], partial(reduce_into, target, everything.unbind(0), call.reduce_op or "sum", call.factor))


def _reduce(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    if not _native(call):
        return _gathered_reduce(ends, call, source, target)
    buffer = torch.empty_like(source) if target is None else target  # gloo leaves partial sums off the root
    _prepare(call, buffer, source)
    work = ends.group.reduce(_summands(buffer), call.root or 0, _NATIVE_OPS[call.reduce_op or "sum"])
    return Payload([work], None if target is None else _averaged(call, target, ends.size))


def _reduce_scatter(ends: Ends, call: Call, source: Parts, target: Any) -> Payload:
    if ends.ragged:
        return _ragged_reduce_scatter(ends, call, listed(source), target)
    if not _native(call) or call.reduce_op == "premul_sum" or _scattered_as_sum(call):
        return _exchanged_reduce(ends, call, source, target)
    options: Any = ReduceScatterOptions()
    options.reduceOp = _NATIVE_OPS[call.reduce_op or "sum"]
    work = reduce_scatter_single(ends.group, _summands(target), _summands(flat(source)), options)
    return Payload([work], _averaged(call, target, ends.size))


def _scattered_as_sum(call: Call) -> bool:
    return SCATTERS_SUMS_ALONE and call.device == "cpu" and call.reduce_op not in ("sum", "avg")


def _ragged_reduce_scatter(ends: Ends, call: Call, parts: list[Tensor], target: Tensor) -> Payload:
    sent = [
        _reduce(ends, call._replace(root=owner), part, target if owner == ends.rank else None)
        for owner, part in enumerate(parts)
    ]
    return _together(sent)


def _exchanged_reduce(ends: Ends, call: Call, source: Parts, target: Tensor) -> Payload:
    mine = target.new_empty((ends.size, *target.shape))
    work = all_to_all_single(ends.group, _carried(mine), _carried(flat(source)), [], [])
    return Payload([work], partial(reduce_into, target, mine.unbind(0), call.reduce_op or "sum", call.factor))


def _broadcast(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    if call.root == ends.rank and source is not None and target.data_ptr() != source.data_ptr():
        target.copy_(source)
    return Payload([ends.group.broadcast(_carried(target), call.root or 0)])


def _all_gather(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    if ends.ragged:
        return _ragged_all_gather(ends, source, listed(target))
    whole = joined(target)
    if whole is not None:
        return Payload([all_gather_single(ends.group, _carried(whole), _carried(source))])
    return Payload([ends.group.allgather([_carried(part) for part in listed(target)], _carried(source))])


def _ragged_all_gather(ends: Ends, source: Tensor, parts: list[Tensor]) -> Payload:
    parts[ends.rank].copy_(source)
    return Payload([ends.group.broadcast(_carried(part), owner) for owner, part in enumerate(parts)])


def _gather(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    root = call.root or 0
    if ends.ragged:
        return _ragged_gather(ends, root, source, target)
    lists = [] if target is None else [[_carried(part) for part in listed(target)]]
    return Payload([ends.group.gather(lists, [_carried(source)], _rooted(GatherOptions(), root))])


def _ragged_gather(ends: Ends, root: int, source: Tensor, target: Parts | None) -> Payload:
    if target is None:
        return send(ends.group, source, root, _RAGGED_TAG)
    parts = listed(target)
    parts[ends.rank].copy_(source)
    others = [(peer, part) for peer, part in enumerate(parts) if peer != ends.rank]
    return _together([receive(ends.group, part, peer, _RAGGED_TAG) for peer, part in others])


def _scatter(ends: Ends, call: Call, source: Parts | None, target: Any) -> Payload:
    root = call.root or 0
    if ends.ragged:
        return _ragged_scatter(ends, root, source, target)
    lists = [] if source is None else [[_carried(part.contiguous()) for part in listed(source)]]
    return Payload([ends.group.scatter([_carried(target)], lists, _rooted(ScatterOptions(), root))])


def _rooted(options: Any, root: int) -> Any:
    """Options that name the root. torch 2.6 takes lists off the root in this form alone."""
    options.rootRank = root
    return options


def _ragged_scatter(ends: Ends, root: int, source: Parts | None, target: Tensor) -> Payload:
    if source is None:
        return receive(ends.group, target, root, _RAGGED_TAG)
    parts = listed(source)
    target.copy_(parts[ends.rank])
    others = [(peer, part) for peer, part in enumerate(parts) if peer != ends.rank]
    return _together([send(ends.group, part, peer, _RAGGED_TAG) for peer, part in others])


def _all_to_all(ends: Ends, call: Call, source: Parts, target: Parts) -> Payload:
    whole = joined(target)
    parts = listed(target)
    out = parts[0].new_empty(sum(part.numel() for part in parts)) if whole is None else whole
    given, taken = _carried(flat(source)), _carried(out)
    lengths = (_lengths(target, taken), _lengths(source, given)) if ends.ragged else ([], [])
    work = all_to_all_single(ends.group, taken, given, *lengths)
    shapes = [part.shape for part in parts]
    return Payload([work], None if whole is not None else partial(_spread, target, out, shapes))


def _spread(target: Parts, whole: Tensor, shapes: Sequence[Sequence[int]]) -> None:
    fill(target, cut(whole, shapes))


def _lengths(parts: Parts, carried: Tensor) -> list[int]:
    """Elements per peer, counted in what travels."""
    return [part.nbytes // carried.element_size() for part in listed(parts)]


def _barrier(ends: Ends, call: Call, source: Any, target: Any) -> Payload:
    return Payload([ends.group.barrier()])


def send(group: ProcessGroup, tensor: Tensor, peer: int, tag: int) -> Payload:
    """Send a contiguous tensor's data."""
    message = _message(tensor)
    return Payload([_held(group.send([message], peer, tag), message)])


def receive(group: ProcessGroup, tensor: Tensor, peer: int, tag: int) -> Payload:
    """Receive exactly as much data as the contiguous ``tensor`` holds."""
    message = _message(tensor)
    return Payload([_held(group.recv([message], peer, tag), message)])


def receive_from_anybody(group: ProcessGroup, tensor: Tensor, tag: int) -> Payload:
    """Receive exactly as much data as the contiguous ``tensor`` holds, from whoever sends first."""
    message = _message(tensor)
    return Payload([_held(group.recv_anysource([message], tag), message)])


def _message(tensor: Tensor) -> Tensor:
    """What travels; of an empty tensor one element, since gloo receives nothing from nobody in particular."""
    carried = _carried(tensor)
    return carried if carried.numel() else carried.new_zeros(1)


def _held(work: Any, tensor: Tensor) -> Any:
    """gloo's work with the tensor that it reads or writes; NCCL's works need no care."""
    return PointToPoint(work, tensor) if tensor.device.type == "cpu" else work


def _together(payloads: Sequence[Payload]) -> Payload:
    finishes = [payload.finish for payload in payloads if payload.finish is not None]
    works = [work for payload in payloads for work in payload.works]
    return Payload(works, (lambda: [finish() for finish in finishes]) if finishes else None)


_RAGGED_TAG = 2**31 - 2
"""Out of the way of users' tags, and of the numbers that letters carry."""

_STARTS: dict[str, Callable[..., Payload]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "gather": _gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
    "barrier": _barrier,
}
