"""The short way between processes that do not compare their calls: plain arrays go straight to the ProcessGroup."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed import AllreduceOptions, ReduceOp, ReduceScatterOptions

from collshim.arrays import FromTorch
from collshim.call import Call
from collshim.transports.absence import FIRST_SLICE
from collshim.transports.flight import Flight
from collshim.transports.payload import (
    SCATTERS_SUMS_ALONE,
    all_gather_single,
    all_to_all_single,
    reduce_scatter_single,
)
from collshim.transports.plain import Asker, plain, plain_parts, plain_target
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
_SCATTERED = {"sum": ReduceOp.SUM} if SCATTERS_SUMS_ALONE else _OPS
_REDUCE_SCATTER: dict[Any, Any] = {name: _reducing(ReduceScatterOptions(), op) for name, op in _SCATTERED.items()}


class Sent(Work[Any]):
    """A call that went the short way. ``described`` is its op, input, reduce op and root, for when it fails.

    It needs no ``Pending`` but torch's work: one object less for each call.
    """

    _flight: Flight | None = None

    def __init__(
        self,
        transport: ProcessGroupTransport,
        work: Any,
        given: Any,
        described: tuple[Any, ...],
        kind: FromTorch | None,
        timeout: float,
    ) -> None:
        self._transport = transport
        self._pending = work
        self._given = given
        self._described = described
        self._sequence = transport.sequence
        self._kind = kind
        self._timeout = self._seconds = timeout

    def wait(self, timeout: float | None = None) -> Any:
        """See ``Work.wait``; what nearly every wait comes to is done here, the rest the usual way."""
        work = self._pending  # None while another thread waits
        if self._settled or work is None or timeout is not None or self._views or self._seconds < FIRST_SLICE:
            return super().wait(timeout)
        try:
            work.wait(_SLICE)
        except RuntimeError:
            return super().wait(timeout)
        given, kind = self._given, self._kind
        self._raw = given
        self._result = result = given if kind is None else kind(given)
        self._settled = True
        return result

    def _arrived(self) -> bool:
        work = self._pending
        return work is not None and (work.is_completed() or self._flight_of(work).done() or self._is_late())

    def _settle(self, pending: Any, timeout: float | None) -> None:
        """A wait of more than a moment is watched as any other is."""
        if timeout is None or timeout > FIRST_SLICE:
            self._look(pending, timeout)
        else:
            self._flight_of(pending).wait(timeout)
        self._take(self._given)

    def _look(self, work: Any, timeout: float | None) -> None:
        try:
            work.wait(_SLICE)
        except RuntimeError:
            self._flight_of(work).wait(None if timeout is None else timeout - FIRST_SLICE)

    def _flight_of(self, work: Any) -> Flight:
        """What watches the work where it takes longer."""
        if self._flight is None:
            op, tensor, reduce_op, root = self._described
            shape = tuple(tensor.shape[1:] if op in _PARTED else tensor.shape)
            call = Call(op, shape, tensor.dtype, tensor.device.type, reduce_op, root=root, sequence=self._sequence - 1)
            self._flight = Flight(self._transport, call, None, None, tensor.device)
            self._flight.follow(work)
        return self._flight


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
        work = all_gather_single(self._group, target, tensor[None])
        return self._sent(work, target, array, out, ("all_gather", tensor, None, None), asker.timeout)

    def reduce_scatter(self, asker: Asker, parts: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.reduce_scatter``."""
        tensor, options = plain_parts(parts, self._transport.size), _REDUCE_SCATTER.get(op) if type(op) is str else None
        if tensor is None or options is None:
            return None
        shape = tuple(tensor.shape)[1:]  # quicker than a Size's own slice
        target = tensor.new_empty(shape) if out is None else plain_target(parts, tensor, out, shape)
        if target is None:
            return None
        work = reduce_scatter_single(self._group, target[None], tensor, options)
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
            return Sent(transport, work, target, described, None if type(array) is Tensor else Tensor.numpy, timeout)
        return Sent(transport, work, out, described, None, timeout)
