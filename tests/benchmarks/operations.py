"""Every form of a collective, a message or an object in torch.distributed or the engine, and how it is called.

All contenders of an operation work on the same memory: a function of torch.distributed and the same one of
collshim.torch.distributed, the engine's ``Communicator``, and the method of a bare ProcessGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup, ReduceOp

from collshim import Recv, Send
from tests.benchmarks.operands import Operands, separate, with_flat, with_pieces

OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
"""The collectives that are measured at every size and on every number of ranks."""


class Operation(NamedTuple):
    """One form of a call.

    Attributes:
        operands: makes the operands of a call.
        torch: a call of a module like torch.distributed, which precedes the operands; None if it has none.
        engine: a call of a communicator, waited for; None if it is the same as torch's.
        bare: a call of a ProcessGroup, waited for; None if a ProcessGroup has none.
        sized: whether the data has the caller's size.
        fake, gloo: whether torch's call is measured over the fake group, and over gloo.
    """

    operands: Callable[[Operands], tuple[Any, ...]]
    torch: Callable[..., object] | None = None
    engine: Callable[..., object] | None = None
    bare: Callable[..., object] | None = None
    sized: bool = True
    fake: bool = True
    gloo: bool = True


def _name(owner: object, *names: str) -> str:
    """Return the name that ``owner`` has, of torch 2.13's and the earlier one."""
    return next(name for name in names if hasattr(owner, name))


_GATHER = _name(dist, "all_gather_single", "all_gather_into_tensor")
_SCATTER = _name(dist, "reduce_scatter_single", "reduce_scatter_tensor")
_BARE_GATHER = _name(ProcessGroup, "all_gather_single", "_allgather_base")
_BARE_SCATTER = _name(ProcessGroup, "reduce_scatter_single", "_reduce_scatter_base")
_BARE_EXCHANGE = _name(ProcessGroup, "all_to_all_single", "alltoall_base")


def _options(kind: Callable[[], Any], **fields: Any) -> Any:
    options = kind()
    for name, value in fields.items():
        setattr(options, name, value)
    return options


_SUM = _options(dist.AllreduceOptions, reduceOp=ReduceOp.SUM)
_AVG = _options(dist.AllreduceOptions, reduceOp=ReduceOp.AVG)
_MAX = _options(dist.AllreduceOptions, reduceOp=ReduceOp.MAX)
_COALESCED = _options(dist.AllreduceCoalescedOptions, reduceOp=ReduceOp.SUM)
_REDUCE = _options(dist.ReduceOptions, reduceOp=ReduceOp.SUM, rootRank=0)
_REDUCE_SCATTER = _options(dist.ReduceScatterOptions, reduceOp=ReduceOp.SUM)
_BROADCAST = _options(dist.BroadcastOptions, rootRank=0)
_GATHER_LIST = _options(dist.GatherOptions, rootRank=0)
_SCATTER_LIST = _options(dist.ScatterOptions, rootRank=0)
_NO_SPLITS: list[int] = []


def _cloned(group: ProcessGroup, x: Tensor) -> Tensor:
    result = x.clone()
    group.allreduce([result], _SUM).wait()
    return result


def _strided(module: Any, x: Tensor) -> None:
    """Reduce a strided tensor; over gloo torch 2.13 adds the memory as if contiguous, the elements in between too."""
    if module is not dist:
        module.all_reduce(x)
        return
    own = x.contiguous()
    module.all_reduce(own)
    x.copy_(own)


def _coalesced(module: Any, x: Tensor, y: Tensor) -> None:
    with module._coalescing_manager():
        module.all_reduce(x)
        module.all_reduce(y)


COLLECTIVES = {
    "all_reduce": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.all_reduce(x),
        engine=lambda c, x: c.all_reduce(x, out=x).wait(),
        bare=lambda g, x: g.allreduce([x], _SUM).wait(),
    ),
    "all_reduce, fresh": Operation(
        lambda of: (of.whole(),),
        engine=lambda c, x: c.all_reduce(x).wait(),
        bare=_cloned,
    ),
    "all_reduce, async": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.all_reduce(x, async_op=True).wait(),
        engine=lambda c, x: c.all_reduce(x, out=x).wait(),
    ),
    "all_reduce, max": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.all_reduce(x, ReduceOp.MAX),
        engine=lambda c, x: c.all_reduce(x, "max", out=x).wait(),
        bare=lambda g, x: g.allreduce([x], _MAX).wait(),
    ),
    "all_reduce, bfloat16": Operation(
        lambda of: (of.whole(torch.bfloat16),),
        torch=lambda d, x: d.all_reduce(x),
        engine=lambda c, x: c.all_reduce(x, out=x).wait(),
        bare=lambda g, x: g.allreduce([x], _SUM).wait(),
    ),
    "all_reduce, avg": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.all_reduce(x, ReduceOp.AVG),
        engine=lambda c, x: c.all_reduce(x, "avg", out=x).wait(),
        bare=lambda g, x: g.allreduce([x], _AVG).wait(),
    ),
    "all_reduce, bool": Operation(
        lambda of: (of.whole(torch.bool),),
        torch=lambda d, x: d.all_reduce(x, ReduceOp.MAX),
        engine=lambda c, x: c.all_reduce(x, "max", out=x).wait(),
        bare=lambda g, x: g.allreduce([x], _MAX).wait(),
    ),
    "all_reduce, strided": Operation(
        lambda of: (of.strided(),),
        torch=_strided,
        engine=lambda c, x: c.all_reduce(x, out=x).wait(),
    ),
    "all_reduce, coalesced": Operation(
        lambda of: (of.part(), of.part()),
        torch=_coalesced,
        engine=lambda c, x, y: c.all_reduce_coalesced([x, y], out=[x, y]).wait(),
        bare=lambda g, x, y: g.allreduce_coalesced([x, y], _COALESCED).wait(),
    ),
    "reduce": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.reduce(x, 0),
        engine=lambda c, x: c.reduce(x, 0, out=x).wait(),
        bare=lambda g, x: g.reduce([x], _REDUCE).wait(),
    ),
    "broadcast": Operation(
        lambda of: (of.whole(),),
        torch=lambda d, x: d.broadcast(x, 0),
        engine=lambda c, x: c.broadcast(x, 0, out=x).wait(),
        bare=lambda g, x: g.broadcast([x], _BROADCAST).wait(),
    ),
    "all_gather": Operation(
        lambda of: (of.whole(), *with_flat(of.stacked())),
        torch=lambda d, x, out, flat: getattr(d, _GATHER)(flat, x),
        engine=lambda c, x, out, flat: c.all_gather(x, out=out).wait(),
        bare=lambda g, x, out, flat: getattr(g, _BARE_GATHER)(flat, x).wait(),
    ),
    "all_gather, list": Operation(
        lambda of: (of.whole(), separate(of.stacked())),
        torch=lambda d, x, out: d.all_gather(out, x),
        engine=lambda c, x, out: c.all_gather(x, out=out).wait(),
        bare=lambda g, x, out: g.allgather([out], [x]).wait(),
    ),
    "all_gather, bool": Operation(
        lambda of: (of.whole(torch.bool), *with_flat(of.stacked(torch.bool))),
        torch=lambda d, x, out, flat: getattr(d, _GATHER)(flat, x),
        engine=lambda c, x, out, flat: c.all_gather(x, out=out).wait(),
        bare=lambda g, x, out, flat: getattr(g, _BARE_GATHER)(flat, x).wait(),
    ),
    "gather": Operation(
        lambda of: (of.whole(), of.on_root(separate(of.stacked()))),
        torch=lambda d, x, out: d.gather(x, out, 0),
        engine=lambda c, x, out: c.gather(x, 0, out=out).wait(),
        bare=lambda g, x, out: g.gather([out] if out else [], [x], _GATHER_LIST).wait(),
    ),
    "scatter": Operation(
        lambda of: (of.on_root(separate(of.parts())), of.part()),
        torch=lambda d, parts, out: d.scatter(out, parts, 0),
        engine=lambda c, parts, out: c.scatter(parts, 0, out=out).wait(),
        bare=lambda g, parts, out: g.scatter([out], [parts] if parts else [], _SCATTER_LIST).wait(),
    ),
    "reduce_scatter": Operation(
        lambda of: (*with_flat(of.parts()), of.part()),
        torch=lambda d, parts, flat, out: getattr(d, _SCATTER)(out, flat),
        engine=lambda c, parts, flat, out: c.reduce_scatter(parts, out=out).wait(),
        bare=lambda g, parts, flat, out: getattr(g, _BARE_SCATTER)(out, flat, _REDUCE_SCATTER).wait(),
    ),
    "reduce_scatter, list": Operation(
        lambda of: (separate(of.parts()), of.part()),
        torch=lambda d, parts, out: d.reduce_scatter(out, parts),
        engine=lambda c, parts, out: c.reduce_scatter(parts, out=out).wait(),
        bare=lambda g, parts, out: g.reduce_scatter([out], [parts], _REDUCE_SCATTER).wait(),
    ),
    "all_to_all": Operation(
        lambda of: (of.parts(), of.parts()),
        torch=lambda d, parts, out: d.all_to_all_single(out, parts),
        engine=lambda c, parts, out: c.all_to_all(parts, out=out).wait(),
        bare=lambda g, parts, out: getattr(g, _BARE_EXCHANGE)(out, parts, _NO_SPLITS, _NO_SPLITS).wait(),
    ),
    "all_to_all, list": Operation(
        lambda of: (separate(of.parts()), separate(of.parts())),
        torch=lambda d, parts, out: d.all_to_all(out, parts),
        engine=lambda c, parts, out: c.all_to_all(parts, out=out).wait(),
        bare=lambda g, parts, out: g.alltoall(out, parts).wait(),
    ),
    "all_to_all, splits": Operation(
        lambda of: (of.splits(), *with_pieces(of.splits()), *with_pieces(of.splits())),
        torch=lambda d, splits, x, parts, out, outs: d.all_to_all_single(out, x, splits, splits),
        engine=lambda c, splits, x, parts, out, outs: c.all_to_all(
            x, out=out, splits=(tuple(splits), tuple(splits))
        ).wait(),
        bare=lambda g, splits, x, parts, out, outs: getattr(g, _BARE_EXCHANGE)(out, x, splits, splits).wait(),
    ),
    "barrier": Operation(
        lambda of: (),
        torch=lambda d: d.barrier(),
        engine=lambda c: c.barrier().wait(),
        bare=lambda g: g.barrier().wait(),
        sized=False,
    ),
}


def _wait(works: Iterable[Any]) -> None:
    for work in works:
        work.wait()


def _batch(module: Any, peer: int, x: Tensor, y: Tensor) -> None:
    _wait(module.batch_isend_irecv([module.P2POp(module.isend, x, peer), module.P2POp(module.irecv, y, peer)]))


def _exchange(module: Any, peer: int, x: Tensor, y: Tensor) -> None:
    _wait([module.isend(x, peer), module.irecv(y, peer)])


def _from_any(module: Any, peer: int, x: Tensor, y: Tensor) -> None:
    sent = module.isend(x, peer)
    module.recv(y)
    sent.wait()


def _message(sender: int) -> Operation:
    return Operation(
        lambda of: (of.rank == sender, of.peer, of.whole()),
        torch=lambda d, sends, peer, x: d.send(x, peer) if sends else d.recv(x, peer),
        engine=lambda c, sends, peer, x: (c.send(x, peer) if sends else c.recv(peer, out=x)).wait(),
        bare=lambda g, sends, peer, x: (g.send([x], peer, 0) if sends else g.recv([x], peer, 0)).wait(),
        fake=False,
    )


def _async_message(sender: int) -> Operation:
    return Operation(
        lambda of: (of.rank == sender, of.peer, of.whole()),
        torch=lambda d, sends, peer, x: (d.isend(x, peer) if sends else d.irecv(x, peer)).wait(),
        fake=False,
    )


MESSAGES = {
    "send": _message(sender=0),
    "recv": _message(sender=1),
    "isend": _async_message(sender=0),
    "irecv": _async_message(sender=1),
    "isend and irecv": Operation(
        lambda of: (of.peer, of.whole(), of.whole()),
        torch=_exchange,
        engine=lambda c, peer, x, y: _wait([c.send(x, peer), c.recv(peer, out=y)]),
        fake=False,
    ),
    "isend, recv from any": Operation(
        lambda of: (of.peer, of.whole(), of.whole()),
        torch=_from_any,
        engine=lambda c, peer, x, y: _wait([c.send(x, peer), c.recv(None, out=y)]),
        fake=False,
    ),
    "batch_isend_irecv": Operation(
        lambda of: (of.peer, of.whole(), of.whole()),
        torch=_batch,
        engine=lambda c, peer, x, y: _wait(c.batch([Send(x, peer), Recv(peer, y)])),
        bare=lambda g, peer, x, y: _wait([g.send([x], peer, 0), g.recv([y], peer, 0)]),
        fake=False,
    ),
    # Among the messages: gloo sends them between rank 0 and the others.
    "monitored_barrier": Operation(lambda of: (), torch=lambda d: d.monitored_barrier(), sized=False, fake=False),
}

OBJECTS = {
    "all_gather_object": Operation(
        lambda of: (of.value(), of.values()),
        torch=lambda d, value, out: d.all_gather_object(out, value),
        engine=lambda c, value, out: c.all_gather_object(value).wait(),
    ),
    "gather_object": Operation(
        lambda of: (of.value(), of.on_root(of.values())),
        torch=lambda d, value, out: d.gather_object(value, out, 0),
        engine=lambda c, value, out: c.gather_object(value, 0).wait(),
    ),
    "broadcast_object_list": Operation(
        lambda of: ([of.value()],),
        torch=lambda d, values: d.broadcast_object_list(values, 0),
        engine=lambda c, values: c.broadcast_object(values[0], 0).wait(),
    ),
    "scatter_object_list": Operation(
        lambda of: ([None], of.on_root(of.values())),
        torch=lambda d, out, values: d.scatter_object_list(out, values, 0),
        engine=lambda c, out, values: c.scatter_object(values, 0).wait(),
    ),
    "send_object_list": Operation(
        lambda of: (of.rank == 0, of.peer, [of.value()]),
        torch=lambda d, sends, peer, values: (d.send_object_list if sends else d.recv_object_list)(values, peer),
        engine=lambda c, sends, peer, values: (c.send_object(values[0], peer) if sends else c.recv_object(peer)).wait(),
        fake=False,
    ),
}

OPERATIONS = COLLECTIVES | MESSAGES | OBJECTS
