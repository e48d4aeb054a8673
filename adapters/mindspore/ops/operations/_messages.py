"""Send, Receive, BatchISendIRecv, NeighborExchange, NeighborExchangeV2. Conventions of MindSpore 2.10.0.

Ranks are ranks in the group. In MindSpore, the two ``NeighborExchange`` primitives run only in graph mode. Gradients
are sent in the reverse direction, as in MindSpore's ``grad_comm_ops``; BatchISendIRecv has no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch
from collshim.communicator import Communicator
from collshim.messages import Recv
from collshim.messages import Send as SentMessage
from collshim.mindspore.communication.comm_func.arguments import require_dense, require_tensor
from collshim.mindspore.communication.comm_func.handle import in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, resolve_group
from collshim.mindspore.ops.operations._arguments import Collective, require_type
from collshim.mindspore.ops.operations._differentiable import apply_differentiable, needs_gradient
from collshim.mindspore.tensor import Tensor as MindSporeTensor
from collshim.mindspore.tensor import wrap

__all__ = ["BatchISendIRecv", "NeighborExchange", "NeighborExchangeV2", "Receive", "Send"]
_SIDES = 8  # clockwise from the top: top, top right, right, ...


class Send(Collective):
    """A primitive that sends a tensor to ``dest_rank``'s ``Receive`` of the same tag, and returns the tensor.

    The receiving rank sends the gradient back in ``group_back``, and the backward pass waits for it.

    Raises:
        TypeError: ``sr_tag`` or ``dest_rank`` is not an int, or ``group`` not a string; in a call, the input is not a
            tensor.
        ValueError: in a call, the group has no such rank.
        RuntimeError: this rank has no such group.
    """

    _depends_on_size = False

    def __init__(
        self,
        sr_tag: int,
        dest_rank: int,
        group: str = HCCL_WORLD_COMM_GROUP,
        group_back: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__("Send", group)
        require_type("Send", "sr_tag", sr_tag, int)
        require_type("Send", "dest_rank", dest_rank, int)
        self.add_prim_attr("sr_tag", sr_tag)
        self.add_prim_attr("dest_rank", dest_rank)
        self.add_prim_attr("group_back", group_back)

    def __call__(self, input_x: Array) -> Array:
        """Send the tensor, and return it."""
        require_tensor("Send", input_x)
        self.global_rank(self.attrs["dest_rank"])
        rank, tag, back = (self.attrs[name] for name in ("dest_rank", "sr_tag", "group_back"))
        own = as_torch(input_x)

        def send(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
            self.members.communicator.send(tensors[0], rank, tag=tag).wait()
            return [tensors[0].clone()]

        def come_back(_: Sequence[Tensor]) -> Sequence[Tensor]:
            gradient = torch.empty(own.shape, dtype=own.dtype)
            resolve_group(back).communicator.recv(rank, out=gradient, tag=tag).wait()
            return [gradient]

        sent = apply_differentiable(send, come_back, [input_x])[0]
        return in_kind_of(input_x, sent) if needs_gradient(own) else input_x


class Receive(Collective):
    """A primitive that receives a tensor of this shape and dtype from ``src_rank``'s ``Send`` of the same tag.

    If the call's input requires a gradient, the result's gradient is sent back in ``group_back``; the input's gradient
    is zero.

    Raises:
        TypeError: ``sr_tag`` or ``src_rank`` is not an int, ``shape`` not a list of ints, ``dtype`` not a dtype, or
            ``group`` not a string.
        ValueError: in a call, the group has no such rank.
        RuntimeError: this rank has no such group; the message has a different shape or dtype.
    """

    _depends_on_size = False

    def __init__(
        self,
        sr_tag: int,
        src_rank: int,
        shape: Sequence[int],
        dtype: torch.dtype,
        group: str = HCCL_WORLD_COMM_GROUP,
        group_back: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__("Receive", group)
        require_type("Receive", "sr_tag", sr_tag, int)
        require_type("Receive", "src_rank", src_rank, int)
        require_type("Receive", "dtype", dtype, torch.dtype)
        self.add_prim_attr("sr_tag", sr_tag)
        self.add_prim_attr("src_rank", src_rank)
        self.add_prim_attr("shape", list(shape))
        self.add_prim_attr("dtype", dtype)
        self.add_prim_attr("group_back", group_back)

    def __call__(self, input_x: Any = None) -> Array:
        """Return the received tensor; the values of ``input_x`` are not read."""
        self.global_rank(self.attrs["src_rank"])
        rank, tag, back = (self.attrs[name] for name in ("src_rank", "sr_tag", "group_back"))

        def receive(_: Sequence[Tensor]) -> Sequence[Tensor]:
            output = torch.empty(tuple(self.attrs["shape"]), dtype=self.attrs["dtype"])
            self.members.communicator.recv(rank, out=output, tag=tag).wait()
            return [output]

        def send_back(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            resolve_group(back).communicator.send(gradients[0], rank, tag=tag).wait()
            return [torch.zeros_like(as_torch(value)) for value in inputs]

        inputs = [] if input_x is None else [input_x]
        return wrap(apply_differentiable(receive, send_back, inputs)[0])


class BatchISendIRecv(Collective):
    """A primitive that exchanges several messages; a call takes the tensors to send, in order.

    Args:
        op_types: "isend" or "irecv", one for each message.
        remote_ranks: for each message, the rank that sends or receives it at the other end.
        receive_shapes: the shape of each received message.
        receive_dtypes: the dtype of each received message.
        group: the group's name; None for all ranks.

    Raises:
        TypeError: an argument is not a list or tuple, or ``group`` not a string; in a call, an input is not a tensor.
        ValueError: an op is unknown, or lengths differ; in a call, there is not one tensor per "isend".
        RuntimeError: this rank has no such group.
    """

    def __init__(
        self,
        op_types: Sequence[str],
        remote_ranks: Sequence[int],
        receive_shapes: Sequence[Sequence[int]] | None = None,
        receive_dtypes: Sequence[torch.dtype] | None = None,
        group: str | None = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__("BatchISendIRecv", HCCL_WORLD_COMM_GROUP if group is None else group)
        given = {
            "op_types": op_types,
            "remote_ranks": remote_ranks,
            "receive_shapes": () if receive_shapes is None else receive_shapes,
            "receive_dtypes": () if receive_dtypes is None else receive_dtypes,
        }
        for what, value in given.items():
            if not isinstance(value, list | tuple):
                refuse(TypeError, f"For 'BatchISendIRecv', {what} must be a list or a tuple, but got {type(value)}")
            self.add_prim_attr(what, value)
        counts = {what: len(value) for what, value in given.items()}
        if counts["op_types"] != counts["remote_ranks"] or counts["receive_shapes"] != counts["receive_dtypes"]:
            refuse(ValueError, f"For 'BatchISendIRecv', lengths must be alike, but got {counts}")
        unknown = [op for op in op_types if op not in ("isend", "irecv")]
        if unknown or list(op_types).count("irecv") != counts["receive_shapes"]:
            refuse(ValueError, f"For 'BatchISendIRecv', op_types is {op_types} with {counts['receive_shapes']} shapes")

    def __call__(self, input_x: Sequence[Array]) -> tuple[Array, ...]:
        """Return a tensor for each message: the received tensor, or, for "isend", a meaningless scalar."""
        tensors = [] if input_x is None else [tensor for tensor in input_x if tensor is not None]
        wanted = list(self.attrs["op_types"]).count("isend")
        if len(tensors) != wanted:
            refuse(ValueError, f"For 'BatchISendIRecv', there must be {wanted} tensors to send, but got {len(tensors)}")
        for tensor in tensors:
            require_tensor(self.name, tensor)
        for rank in self.attrs["remote_ranks"]:
            self.global_rank(rank)
        comm, sends = self.members.communicator, iter(tensors)
        recvs = iter(zip(self.attrs["receive_shapes"], self.attrs["receive_dtypes"], strict=True))
        outputs: list[Array] = []
        messages: list[SentMessage | Recv] = []
        for op, rank in zip(self.attrs["op_types"], self.attrs["remote_ranks"], strict=True):
            if op == "isend":
                tensor = next(sends)
                messages.append(SentMessage(as_torch(tensor).detach(), rank))
                outputs.append(in_kind_of(tensor, as_torch(tensor).detach().new_zeros(())))
            else:
                outputs.append(_empty(*next(recvs)))
                messages.append(Recv(rank, outputs[-1]))
        _complete(comm, messages)
        return tuple(outputs)


class NeighborExchange(Collective):
    """A primitive that sends a tensor to each of ``send_rank_ids``, and returns tensors from ``recv_rank_ids``.

    Raises:
        TypeError: ``group`` is not a string; in a call, an input is not a tensor.
        ValueError: in a call, the shapes are not ``send_shapes``, or the group has no such rank.
        RuntimeError: this rank has no such group, or a message has a different shape or dtype.
    """

    def __init__(
        self,
        send_rank_ids: Sequence[int],
        recv_rank_ids: Sequence[int],
        recv_shapes: Sequence[Sequence[int]],
        send_shapes: Sequence[Sequence[int]],
        recv_type: torch.dtype,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__("NeighborExchange", group)
        self.add_prim_attr("send_rank_ids", list(send_rank_ids))
        self.add_prim_attr("recv_rank_ids", list(recv_rank_ids))
        self.add_prim_attr("recv_shapes", [tuple(shape) for shape in recv_shapes])
        self.add_prim_attr("send_shapes", [tuple(shape) for shape in send_shapes])
        self.add_prim_attr("recv_type", recv_type)

    def __call__(self, input_x: Sequence[Array]) -> tuple[Array, ...]:
        """Return the neighbours' tensors."""
        for tensor in input_x:
            require_tensor(self.name, tensor)
        shapes = [tuple(tensor.shape) for tensor in input_x]
        if shapes != self.attrs["send_shapes"]:
            refuse(ValueError, f"For '{self.name}', shapes must be {self.attrs['send_shapes']}, but got {shapes}")
        to, from_ = self.attrs["send_rank_ids"], self.attrs["recv_rank_ids"]
        dtypes = [as_torch(tensor).dtype for tensor in input_x]

        def exchange(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
            outputs = [torch.empty(shape, dtype=self.attrs["recv_type"]) for shape in self.attrs["recv_shapes"]]
            _exchange(self, dict(zip(to, tensors, strict=True)), dict(zip(from_, outputs, strict=True)))
            return outputs

        def back(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
            outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
            _exchange(self, dict(zip(from_, gradients, strict=True)), dict(zip(to, outputs, strict=True)))
            return outputs

        return tuple(map(wrap, apply_differentiable(exchange, back, input_x)))


class NeighborExchangeV2(Collective):
    """A primitive that sends the borders of a tensor ``(N, C, H, W)`` to neighbours, and surrounds it with theirs.

    Args:
        send_rank_ids: the eight ranks to send to, clockwise from the top; -1 for no rank.
        send_lens: the number of rows or columns to send at the top, bottom, left and right; corners use two of them.
        recv_rank_ids: the eight ranks to receive from, like ``send_rank_ids``.
        recv_lens: the numbers to receive, like ``send_lens``; a border without a rank is filled with zeros.
        data_format: "NCHW".
        group: the group's name.

    Raises:
        TypeError: ``group`` is not a string, or a rank not an int; in a call, the input is not a tensor.
        ValueError: there are not eight ranks or four lengths; a rank occurs twice; the format is not "NCHW"; in a call,
            the input does not have four axes.
        RuntimeError: this rank has no such group.
    """

    def __init__(
        self,
        send_rank_ids: Sequence[int],
        send_lens: Sequence[int],
        recv_rank_ids: Sequence[int],
        recv_lens: Sequence[int],
        data_format: str,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__("NeighborExchangeV2", group)
        if data_format != "NCHW":
            refuse(ValueError, f"For '{self.name}', data_format must be 'NCHW', but got {data_format!r}")
        for what, ranks, lens in (("send", send_rank_ids, send_lens), ("recv", recv_rank_ids, recv_lens)):
            for rank in ranks:
                if not isinstance(rank, int):
                    text = f"The 'rank_id in {what}_rank_ids' must be 'int',  but got {type(rank).__name__!r}."
                    refuse(TypeError, text)
            named = [rank for rank in ranks if rank != -1]
            if len(ranks) != _SIDES or len(set(named)) != len(named) or len(lens) != 4 or min(lens) < 0:
                text = (
                    f"{what}_rank_ids must be 8 ranks, each once, and {what}_lens 4 lengths, but got {ranks} and {lens}"
                )
                refuse(ValueError, f"For '{self.name}', {text}")
            self.add_prim_attr(f"{what}_rank_ids", list(ranks))
            self.add_prim_attr(f"{what}_lens", list(lens))

    def __call__(self, input_x: Array) -> Array:
        """Return the tensor with the received borders, ``(N, C, top + H + bottom, left + W + right)``."""
        require_tensor(self.name, input_x)
        own = require_dense(self.members.communicator, self.name, input_x)
        if own.dim() != 4:
            refuse(ValueError, f"For '{self.name}', the input must be (N, C, H, W), but got {tuple(own.shape)}")
        found = apply_differentiable(
            lambda tensors: [self._surround(tensors[0])], lambda found: [self._back(found[0])], [own]
        )
        return in_kind_of(input_x, found[0])

    def _surround(self, own: Tensor) -> Tensor:
        top, bottom, left, right = self.attrs["recv_lens"]
        height, width = own.shape[2:]
        output = own.new_zeros((*own.shape[:2], top + height + bottom, left + width + right))
        output[:, :, top : top + height, left : left + width] = own
        inner = _sides(own, self.attrs["send_lens"], (0, 0), (height, width))
        outer = _sides(output, self.attrs["recv_lens"], (top, left), (height, width), outside=True)
        self._swap(inner, outer, "send", "recv")
        return output

    def _back(self, gradient: Tensor) -> Tensor:
        """Return the input's gradient: the middle of ``gradient``, plus the neighbours' gradients of sent borders."""
        top, bottom, left, right = self.attrs["recv_lens"]
        height, width = gradient.shape[2] - top - bottom, gradient.shape[3] - left - right
        own = gradient[:, :, top : top + height, left : left + width].clone()
        outer = _sides(gradient, self.attrs["recv_lens"], (top, left), (height, width), outside=True)
        came = [torch.zeros_like(part) for part in _sides(own, self.attrs["send_lens"], (0, 0), (height, width))]
        self._swap(outer, came, "recv", "send")
        for part, more in zip(_sides(own, self.attrs["send_lens"], (0, 0), (height, width)), came, strict=True):
            part.add_(more)
        return own

    def _swap(self, given: Sequence[Tensor], wanted: Sequence[Tensor], way: str, other: str) -> None:
        """Send eight parts to the ranks of ``way``, and receive eight parts from the ranks of ``other``."""
        sends = {rank: part for rank, part in zip(self.attrs[f"{way}_rank_ids"], given, strict=True) if rank != -1}
        recvs = {rank: part for rank, part in zip(self.attrs[f"{other}_rank_ids"], wanted, strict=True) if rank != -1}
        places = {rank: torch.empty_like(part, memory_format=torch.contiguous_format) for rank, part in recvs.items()}
        _exchange(self, sends, places)
        for rank, part in recvs.items():
            part.copy_(places[rank])


def _sides(
    image: Tensor, lens: Sequence[int], start: tuple[int, int], size: tuple[int, int], *, outside: bool = False
) -> list[Tensor]:
    """Return the borders of an area in an image, inside or outside of the area, clockwise from the top."""
    top, bottom, left, right = lens
    (row, column), (height, width) = start, size
    below, beside = row + height, column + width
    rows = {
        "low": slice(row - top, row) if outside else slice(row, row + top),
        "all": slice(row, row + height),
        "high": slice(below, below + bottom) if outside else slice(below - bottom, below),
    }
    columns = {
        "low": slice(column - left, column) if outside else slice(column, column + left),
        "all": slice(column, column + width),
        "high": slice(beside, beside + right) if outside else slice(beside - right, beside),
    }
    clockwise = ("low", "all"), ("low", "high"), ("all", "high"), ("high", "high")
    more = ("high", "all"), ("high", "low"), ("all", "low"), ("low", "low")
    return [image[:, :, rows[vertical], columns[level]] for vertical, level in (*clockwise, *more)]


def _exchange(primitive: Collective, sends: dict[int, Array], recvs: dict[int, Array]) -> None:
    for rank in (*sends, *recvs):
        primitive.global_rank(rank)
    comm = primitive.members.communicator
    messages: list[SentMessage | Recv] = [
        SentMessage(as_torch(tensor).detach().contiguous(), rank) for rank, tensor in sends.items()
    ]
    _complete(comm, [*messages, *(Recv(rank, output) for rank, output in recvs.items())])


def _complete(comm: Communicator, messages: Sequence[SentMessage | Recv]) -> None:
    for work in comm.batch(messages):
        work.wait()


def _empty(shape: Sequence[int], dtype: torch.dtype) -> MindSporeTensor:
    return MindSporeTensor(torch.empty(tuple(shape), dtype=dtype))
