"""MindSpore's operators between two ranks: Send, Receive, BatchISendIRecv, NeighborExchange, NeighborExchangeV2."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from collshim.communicator import Communicator
from collshim.errors import ArgumentError, also
from collshim.messages import Recv, Send
from collshim.patching.mindspore.functional import Functional
from collshim.patching.mindspore.gradients import Operation, Posted, Started
from collshim.patching.replacing import Foreign
from collshim.together import Together
from collshim.work import CompletedWork


class MessagePrimitives:
    """The operators; every participating rank calls them, and ranks are ranks in the group."""

    def __init__(self, functional: Functional) -> None:
        self._functional = functional

    def send(self, op: Foreign, x: Foreign) -> Foreign:
        """Send a tensor, and return it; its gradient comes from the receiving rank, through ``group_back``."""
        return self._send(x, op.rank, op.sr_tag, op.group, op.group_back).wait()

    def receive(self, op: Foreign, x: Foreign = None) -> Foreign:
        """Receive a tensor; ``x`` is not read, but through its autograd graph the gradient is sent back."""
        inputs = () if x is None else (x,)
        return self._receive(inputs, (op.shape, op.dtype), op.rank, op.tag, op.group, op.group_back).wait()

    def batch(self, op: Foreign, xs: Foreign) -> Foreign:
        """Return a tensor for each message: the received one, or for a send a meaningless number. No gradient."""
        comm = self._functional.groups.communicator(op.group)
        sends = iter(xs or ())
        shapes = iter(zip(op.receive_shapes, op.receive_dtypes, strict=True))
        outs, messages = list[Tensor](), list[Send | Recv]()
        for kind, rank in zip(op.op_types, op.remote_ranks, strict=True):
            if kind == "isend":
                own = self._functional.tensors.read(next(sends))
                messages.append(Send(own, rank))
                outs.append(own.new_zeros(()))
            else:
                outs.append(self._functional.tensors.empty(*next(shapes)))
                messages.append(Recv(rank, outs[-1]))
        Together(comm.batch(messages)).wait()
        return tuple(map(self._functional.tensors.make, outs))

    def neighbor_exchange(self, op: Foreign, xs: Foreign) -> Foreign:
        """Return the tensors that the neighbours sent, as a tuple."""
        given, wanted = [tuple(x.shape) for x in xs], [tuple(shape) for shape in op.send_shapes]
        if given != wanted:
            text = f"NeighborExchange: the shapes are {given}, should be {wanted}"
            raise also(ArgumentError, ValueError)(text)
        ways = (op.send_rank_ids, op.recv_rank_ids)
        posted = self._exchange(xs, (op.recv_shapes, op.recv_type), ways, op.group)
        posted.work.wait()
        return tuple(posted.outputs)

    def neighbor_exchange_v2(self, op: Foreign, x: Foreign) -> Foreign:
        """Return ``x``, ``(N, C, H, W)``, with the neighbours' borders around it; zeros if there is no neighbour."""
        comm = self._functional.groups.communicator(op.group)
        if len(x.shape) != 4:
            text = f"NeighborExchangeV2: the input has shape {tuple(x.shape)}, should be (N, C, H, W)"
            raise also(ArgumentError, ValueError)(f"{text} (rank {comm.rank} of {comm.size})")
        sends, recvs = (op.send_rank_ids, op.send_lens), (op.recv_rank_ids, op.recv_lens)

        def rule(operation: Operation, gradients: Sequence[Foreign]) -> Sequence[Foreign]:
            whole = self._functional.tensors.read(gradients[0])
            return (self._functional.tensors.make(_add_gradients(comm, whole, sends, recvs)),)

        operation = Operation(lambda xs: _complete(_add_borders(comm, xs[0], sends, recvs)), rule)
        return self._functional.post("NeighborExchangeV2", comm, operation, x).wait()

    def _send(self, x: Foreign, to: int, tag: int, group: str, back: str) -> Posted:
        comm = self._functional.groups.communicator(group)

        def start(xs: list[Tensor]) -> Started:
            return [xs[0].clone()], comm.send(xs[0], to, tag)

        def rule(operation: Operation, gradients: Sequence[Foreign]) -> Sequence[Foreign]:
            like = (tuple(x.shape), x.dtype)
            return (self._receive((), like, to, tag, back, back).wait(),)

        return self._functional.post("Send", comm, Operation(start, rule), x)

    def _receive(
        self, xs: Sequence[Foreign], like: tuple[Foreign, Foreign], source: int, tag: int, group: str, back: str
    ) -> Posted:
        comm = self._functional.groups.communicator(group)

        def start(_: list[Tensor]) -> Started:
            out = self._functional.tensors.empty(*like)
            return [out], comm.recv(source, out=out, tag=tag)

        def rule(operation: Operation, gradients: Sequence[Foreign]) -> Sequence[Foreign]:
            self._send(gradients[0], source, tag, back, back).wait()
            return tuple(map(self._functional.zeros_like, operation.inputs))

        return self._functional.post("Receive", comm, Operation(start, rule), *xs)

    def _exchange(
        self,
        xs: Sequence[Foreign],
        like: tuple[Foreign, Foreign],
        ways: tuple[Sequence[int], Sequence[int]],
        group: str,
    ) -> Posted:
        comm = self._functional.groups.communicator(group)
        shapes, dtype = like

        def start(own: list[Tensor]) -> Started:
            outs = [self._functional.tensors.empty(shape, dtype) for shape in shapes]
            messages: list[Send | Recv] = [Send(x, rank) for x, rank in zip(own, ways[0], strict=True)]
            messages += [Recv(rank, out) for out, rank in zip(outs, ways[1], strict=True)]
            return outs, Together(comm.batch(messages))

        def rule(operation: Operation, gradients: Sequence[Foreign]) -> Sequence[Foreign]:
            back = ([tuple(x.shape) for x in operation.inputs], operation.inputs[0].dtype)
            posted = self._exchange(gradients, back, (ways[1], ways[0]), group)
            posted.work.wait()
            return posted.outputs

        return self._functional.post("NeighborExchange", comm, Operation(start, rule), *xs)


Ways = tuple[Sequence[int], Sequence[int]]
"""Eight ranks, -1 for none, clockwise from the top; and four lengths: top, bottom, left, right."""


def _complete(out: Tensor) -> Started:
    return [out], CompletedWork(out)


def _add_borders(comm: Communicator, own: Tensor, sends: Ways, recvs: Ways) -> Tensor:
    top, bottom, left, right = recvs[1]
    height, width = own.shape[2:]
    out = own.new_zeros((*own.shape[:2], top + height + bottom, left + width + right))
    out[:, :, top : top + height, left : left + width] = own
    inner, outer = _inside(own, sends[1]), _outside(out, recvs[1])
    for area, received in zip(outer, _exchange_areas(comm, (sends[0], inner), (recvs[0], outer)), strict=True):
        if received is not None:
            area.copy_(received)
    return out


def _add_gradients(comm: Communicator, whole: Tensor, sends: Ways, recvs: Ways) -> Tensor:
    """Return the middle of ``whole``, with the gradients that the neighbours send back added to its borders."""
    top, bottom, left, right = recvs[1]
    height, width = whole.shape[2] - top - bottom, whole.shape[3] - left - right
    out = whole[:, :, top : top + height, left : left + width].clone()
    outer, inner = _outside(whole, recvs[1]), _inside(out, sends[1])
    for area, received in zip(inner, _exchange_areas(comm, (recvs[0], outer), (sends[0], inner)), strict=True):
        if received is not None:
            area.add_(received)
    return out


def _exchange_areas(
    comm: Communicator, given: tuple[Sequence[int], list[Tensor]], wanted: tuple[Sequence[int], list[Tensor]]
) -> list[Tensor | None]:
    """Exchange eight areas; return the received areas in new memory, and None for each without a neighbour."""
    outs = [
        None if rank == -1 else torch.empty(area.shape, dtype=area.dtype) for rank, area in zip(*wanted, strict=True)
    ]
    messages: list[Send | Recv] = [
        Send(part.contiguous(), rank) for rank, part in zip(*given, strict=True) if rank != -1
    ]
    messages += [Recv(rank, out) for rank, out in zip(wanted[0], outs, strict=True) if rank != -1]
    Together(comm.batch(messages)).wait()
    return outs


def _inside(image: Tensor, lens: Sequence[int]) -> list[Tensor]:
    """Return the eight borders inside an image, clockwise from the top."""
    height, width = image.shape[2:]
    top, bottom, left, right = lens
    return _eight(image, (slice(0, top), slice(height - bottom, height)), (slice(0, left), slice(width - right, width)))


def _outside(image: Tensor, lens: Sequence[int]) -> list[Tensor]:
    """Return the eight areas around the middle of an image, clockwise from the top."""
    top, bottom, left, right = lens
    rows, columns = slice(top, image.shape[2] - bottom), slice(left, image.shape[3] - right)
    high, wide = slice(rows.stop, image.shape[2]), slice(columns.stop, image.shape[3])
    return _eight(image, (slice(0, top), high), (slice(0, left), wide), (rows, columns))


def _eight(
    image: Tensor,
    rows: tuple[slice, slice],
    columns: tuple[slice, slice],
    middle: tuple[slice, slice] = (slice(None), slice(None)),
) -> list[Tensor]:
    (up, down), (left, right), (row, column) = rows, columns, middle
    clockwise = ((up, column), (up, right), (row, right), (down, right))
    more = ((down, column), (down, left), (row, left), (up, left))
    return [image[:, :, one, other] for one, other in (*clockwise, *more)]
