"""The short way between threads: small plain arrays, whose ranks need no more than to find that they ask alike.

A rank takes its usual seat at the meeting, with a signature in place of a described call. Where all signatures are
equal the last rank serves all; where they are not, or a rank came the usual way, the calls are described after all
and the meeting is as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from collshim.call import Call, Caller, caller
from collshim.transports.alike import REDUCED, Signature
from collshim.transports.meeting import ALONE
from collshim.transports.plain import Asker, kind_of_fresh, plain, plain_target
from collshim.transports.ticket import Ticket
from collshim.work import Work

if TYPE_CHECKING:
    from collshim.transports.local import LocalTransport

_PARTED = ("reduce_scatter", "all_to_all")


class QuickSeat:
    """A seat with a signature; its call is described when somebody asks."""

    stream = None
    __slots__ = ("_caller", "given", "op", "outputs", "rank", "signature")

    def __init__(self, rank: int, signature: Signature, given: Tensor, outputs: Tensor | None, caller: Caller) -> None:
        self.rank = rank
        self.signature = signature
        self.op = signature.op
        self.given = given
        self.outputs = outputs
        self._caller = caller

    def __str__(self) -> str:
        return str(self.call)

    @property
    def device(self) -> torch.device:
        """Where its arrays are."""
        return self.given.device

    @property
    def inputs(self) -> Tensor | None:
        """What the rank gives: nothing where it is not the root of a broadcast."""
        return None if self.op == "broadcast" and self.signature.root != self.rank else self.given

    @property
    def call(self) -> Call:
        """The call as the usual way would have described it."""
        op, shape, dtype, device, reduce_op, root = self.signature
        part = shape[1:] if op in _PARTED else shape
        return Call(op, tuple(part), dtype, device.type, reduce_op, root=root, site=self._caller.site())


class QuickTicket(Ticket):
    """A claim whose result is what the caller gave as ``out``, or joins the graph where another rank needs it."""

    __slots__ = ("_asker", "_out", "_seat")

    def __init__(self, transport: LocalTransport, seat: QuickSeat, asker: Asker, out: Any) -> None:
        super().__init__(transport, transport.take(seat), seat.rank, seat)
        self._seat = seat
        self._asker = asker
        self._out = out

    def wait(self, timeout: float | None) -> Any:
        """The result."""
        result = super().wait(timeout)
        if self._out is not None:
            return self._out
        return self._joined(result) if self.joint else result

    def _joined(self, result: Any) -> Any:
        return self._asker.join_graph(self._seat.call, self._seat.inputs, self, result)


class LocalExpress:
    """See ``Express``."""

    queue = ()

    def __init__(self, transport: LocalTransport, unseen: Sequence[Any]) -> None:
        self.unseen = unseen
        self._transport = transport
        self._limit = ALONE // transport.size

    def all_reduce(self, asker: Asker, array: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_reduce``."""
        tensor = self._small(array)
        if tensor is None or not _reduces(op) or (out is not None and out is not array):
            return None
        return self._posted(asker, "all_reduce", array, tensor, None if out is None else tensor, out, op)

    def broadcast(self, asker: Asker, array: Any, root: Any, out: Any) -> Work[Any] | None:
        """See ``Express.broadcast``."""
        tensor = self._small(array)
        if tensor is None or (out is not None and out is not array):
            return None
        if type(root) is not int or not 0 <= root < self._transport.size:
            return None
        return self._posted(asker, "broadcast", array, tensor, None if out is None else tensor, out, None, root)

    def all_gather(self, asker: Asker, array: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_gather``."""
        size = self._transport.size
        tensor = self._small(array, size)
        if tensor is None:
            return None
        target = None if out is None else plain_target(array, tensor, out, (size, *tensor.shape))
        if target is None and out is not None:
            return None
        return self._posted(asker, "all_gather", array, tensor, target, out)

    def reduce_scatter(self, asker: Asker, parts: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Express.reduce_scatter``."""
        tensor = self._small_parts(parts)
        if tensor is None or not _reduces(op):
            return None
        target = None if out is None else plain_target(parts, tensor, out, tensor.shape[1:])
        if target is None and out is not None:
            return None
        return self._posted(asker, "reduce_scatter", parts, tensor, target, out, op)

    def all_to_all(self, asker: Asker, parts: Any, out: Any) -> Work[Any] | None:
        """See ``Express.all_to_all``."""
        tensor = self._small_parts(parts)
        if tensor is None:
            return None
        target = None if out is None else plain_target(parts, tensor, out, tensor.shape)
        if target is None and out is not None:
            return None
        return self._posted(asker, "all_to_all", parts, tensor, target, out)

    def _posted(
        self,
        asker: Asker,
        op: str,
        array: Any,
        tensor: Tensor,
        target: Tensor | None,
        out: Any,
        reduce_op: str | None = None,
        root: int | None = None,
    ) -> Work[Any]:
        transport = self._transport
        signature = Signature(op, tensor.shape, tensor.dtype, tensor.device, reduce_op, root)
        seat = QuickSeat(transport.rank, signature, tensor, target, caller())
        ticket = transport.remember(QuickTicket(transport, seat, asker, out))
        return Work(ticket, (), kind_of_fresh(array) if out is None else None, asker.timeout)

    def _small(self, array: Any, copies: int = 1) -> Tensor | None:
        """A small plain array; out of the graph, since another rank's thread may compute with its own grad mode."""
        tensor = plain(array)
        if tensor is None or tensor.nbytes * copies > self._limit:
            return None
        return tensor.detach() if tensor.requires_grad else tensor

    def _small_parts(self, parts: Any) -> Tensor | None:
        tensor = self._small(parts)
        return tensor if tensor is not None and (shape := tensor.shape) and shape[0] == self._transport.size else None


def _reduces(op: Any) -> bool:
    return type(op) is str and op in REDUCED
