"""P2POp and batch_isend_irecv: sends and receives that do not wait for each other. Conventions of torch 2.13.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.distributed

from collshim.adapting.refusing import refuse
from collshim.arrays import as_torch
from collshim.messages import Recv, Send
from collshim.torch.distributed.arguments import require_tensor
from collshim.torch.distributed.forms import uncounted, values
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, rank_in, require_membership
from collshim.torch.distributed.point_to_point import irecv, isend
from collshim.torch.distributed.posting import submit
from collshim.torch.distributed.profiling import begin_event
from collshim.torch.distributed.work import Work

_OWN: dict[Any, Callable[..., Any]] = {
    isend: isend,
    irecv: irecv,
    torch.distributed.isend: isend,
    torch.distributed.irecv: irecv,
}


class P2POp:
    """One send or receive of ``batch_isend_irecv``.

    Args:
        op: ``isend`` or ``irecv``.
        tensor: the data to send, or the memory to receive into.
        peer, group_peer: the other rank, as a global rank or as a rank in the group; pass exactly one of them.
        group: the group of ranks that take part; None for all ranks.
        tag: a number, which must equal the tag of the other rank's operation.

    Raises:
        ValueError: ``op`` is another function; both or neither of ``peer`` and ``group_peer`` are passed; the peer is
            outside the group.
        TypeError: ``tensor`` is not an array.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Any,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if not any(op is function for function in _OWN):
            text = "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
            refuse(ValueError, f"{text}``torch.distributed.irecv``.")
        require_tensor("tensor", tensor)
        process_group = group_of(group)
        if process_group is None:
            refuse(ValueError, f"Group {group} is not registered: this rank is outside it")
        self.op = _OWN[op]
        self.tensor = tensor
        self.group: ProcessGroup = process_group
        self.group_peer: int = rank_in(process_group, peer, group_peer)
        self.peer = _global(process_group, self.group_peer) if peer is None else peer
        self.tag = tag

    def __repr__(self) -> str:
        rank, peer = self.group.rank(), self.group_peer
        source, destination = (rank, peer) if self.op is isend else (peer, rank)
        tensor = as_torch(self.tensor)
        ends = f"pg={self.group.group_name}, group_src={source}, group_dst={destination}"
        return f"P2POp({self.op.__name__} {ends},  {tensor.shape}, {tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Post all sends and receives of a list, in whatever order they are listed; if one is refused, none is posted.

    Messages from one rank to another with the same tag are matched in the order of the lists.

    Returns:
        One Work per P2POp, like those of ``isend`` and ``irecv``.

    Raises:
        ValueError: the argument is not a list of P2POp, or the P2POps do not all have the same group.
        IndexError: the list is empty.
        RuntimeError: as for ``isend`` and ``irecv``.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(operation, P2POp) for operation in p2p_op_list):
        text = "Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``."
        refuse(ValueError, text)
    if not p2p_op_list:
        refuse(IndexError, "batch_isend_irecv: list index out of range: p2p_op_list is empty")
    group = p2p_op_list[0].group
    if any(operation.group is not group for operation in p2p_op_list):
        refuse(ValueError, "All ops need to use the same group.")
    messages = [_message(operation) for operation in p2p_op_list]
    events = [begin_event(group.backend, operation.op.__name__[1:], [operation.tensor]) for operation in p2p_op_list]
    post = partial(submit, group, lambda comm: comm.batch(messages))
    works = post() if events[0] is None else events[0].around(post)
    triples = zip(works, p2p_op_list, events, strict=True)
    return [Work(work, group.deadline, [operation.tensor], event) for work, operation, event in triples]


def _message(operation: P2POp) -> Send | Recv:
    if operation.op is isend:
        return Send(values(operation.tensor), operation.group_peer, operation.tag)
    return Recv(operation.group_peer, out=uncounted(operation.tensor), tag=operation.tag)


def _global(group: ProcessGroup, rank: Any) -> Any:
    if group is require_membership().whole:
        return rank
    if rank not in range(group.size()):
        refuse(ValueError, f"Group rank {rank} is not part of group {group}")
    return group.communicator.ranks[rank]
