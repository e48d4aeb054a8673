"""The short way between processes that do not compare their calls: plain arrays go straight to the ProcessGroup."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed import AllreduceOptions, ReduceOp, ReduceScatterOptions

from collshim.call import Call
from collshim.transports.absence import FIRST_SLICE
from collshim.transports.flight import Flight
from collshim.transports.payload import all_gather_single, all_to_all_single, reduce_scatter_single
from collshim.transports.plain import Asker, kind_of_fresh, plain, plain_parts, plain_target
from collshim.work import Work

if TYPE_CHECKING:
    from collshim.transports.process_group import ProcessGroupTransport

_OPS: dict[Any, Any] = {"sum": ReduceOp.SUM, "prod": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX}
_PARTED = ("reduce_scatter", "all_to_all")
_SLICE = timedelta(seconds=FIRST_SLICE)


def _reducing(options: Any, op: Any) -> Any:
    options.reduceOp = op
    return options


_ALL_REDUCE: dict[Any, Any] = {name: _reducing(AllreduceOptions(), op) for name, op in _OPS.items()}
_REDUCE_SCATTER: dict[Any, Any] = {name: _reducing(ReduceScatterOptions(), op) for name, op in _OPS.items()}


class Dispatch:
    """A call that went the short way. ``described`` is its op, input, reduce op and root, for when it fails."""

    __slots__ = ("_described", "_result", "_sequence", "_transport", "_work")
    joint = False
    token: Tensor | None = None
    source: int | None = None

    def __init__(self, transport: ProcessGroupTransport, work: Any, result: Any, described: tuple[Any, ...]) -> None:
        self._transport = transport
        self._work = work
        self._result = result
        self._described = described
        self._sequence = transport.sequence

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        return bool(self._work.is_completed())

    def wait(self, timeout: float | None) -> Any:
        """The result; a wait of more than a moment is watched as any other is."""
        if timeout is not None and timeout < FIRST_SLICE:
            self._watch(timeout)
            return self._result
        try:
            self._work.wait(_SLICE)
        except RuntimeError:
            self._watch(None if timeout is None else timeout - FIRST_SLICE)
        return self._result

    def _watch(self, timeout: float | None) -> None:
        op, tensor, reduce_op, root = self._described
        shape = tuple(tensor.shape[1:] if op in _PARTED else tensor.shape)
        call = Call(op, shape, tensor.dtype, tensor.device.type, reduce_op, root=root, sequence=self._sequence - 1)
        flight = Flight(self._transport, call, None, None, tensor.device)
        flight.follow(self._work)
        flight.wait(timeout)


class ProcessExpress:
    """See ``Express``."""

    def __init__(
        self,
        transport: ProcessGroupTransport,
        queue: Sequence[Flight],
        unseen: Sequence[Flight],
        latest: dict[str, Any],
    ) -> None:
        self.queue = queue
        self._latest = latest
        self.unseen = unseen
        self._transport = transport
        self._group = transport.payload_group

    def all_reduce(self, asker: Asker, array: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_reduce``."""
        tensor, options = plain(array), _ALL_REDUCE.get(op) if type(op) is str else None
        if tensor is None or options is None or (out is not None and out is not array):
            return None
        target = tensor if out is array else tensor.clone()
        work = self._group.allreduce([target], options)
        return self._sent(work, target, array, out, ("all_reduce", tensor, op, None), asker.timeout)

    def broadcast(self, asker: Asker, array: Any, root: Any, out: Any) -> Work[Any] | None:
        """See ``Express.broadcast``."""
        tensor, transport = plain(array), self._transport
        if tensor is None or (out is not None and out is not array):
            return None
        if type(root) is not int or not 0 <= root < transport.size:
            return None
        mine = root == transport.rank
        target = tensor if out is array else tensor.clone() if mine else torch.empty_like(tensor)
        work = self._group.broadcast(target, root)
        return self._sent(work, target, array, out, ("broadcast", tensor, None, root), asker.timeout)

    def all_gather(self, asker: Asker, array: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_gather``."""
        tensor, size = plain(array), self._transport.size
        if tensor is None:
            return None
        shape = (size, *tensor.shape)
        target = tensor.new_empty(shape) if out is None else plain_target(array, tensor, out, shape)
        if target is None:
            return None
        work = all_gather_single(self._group, target.view(-1), tensor if len(shape) == 2 else tensor.view(-1))
        return self._sent(work, target, array, out, ("all_gather", tensor, None, None), asker.timeout)

    def reduce_scatter(self, asker: Asker, parts: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.reduce_scatter``."""
        tensor, options = plain_parts(parts, self._transport.size), _REDUCE_SCATTER.get(op) if type(op) is str else None
        if tensor is None or options is None:
            return None
        shape = tensor.shape[1:]
        target = tensor.new_empty(shape) if out is None else plain_target(parts, tensor, out, shape)
        if target is None:
            return None
        flat = target if len(shape) == 1 else target.view(-1)
        work = reduce_scatter_single(self._group, flat, tensor.view(-1), options)
        return self._sent(work, target, parts, out, ("reduce_scatter", tensor, op, None), asker.timeout)

    def all_to_all(self, asker: Asker, parts: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_to_all``."""
        tensor = plain_parts(parts, self._transport.size)
        if tensor is None:
            return None
        target = torch.empty_like(tensor) if out is None else plain_target(parts, tensor, out, tensor.shape)
        if target is None:
            return None
        work = all_to_all_single(self._group, target, tensor, [], [])
        return self._sent(work, target, parts, out, ("all_to_all", tensor, None, None), asker.timeout)

    def _sent(
        self, work: Any, target: Tensor, array: Any, out: Any, described: tuple[Any, ...], timeout: float
    ) -> Work[Any]:
        transport = self._transport
        transport.sequence += 1
        self._latest["payload"] = work
        if out is None:
            return Work(Dispatch(transport, work, target, described), (), kind_of_fresh(array), timeout)
        return Work(Dispatch(transport, work, out, described), (), None, timeout)
