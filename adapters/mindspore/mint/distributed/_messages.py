"""send, recv, isend, irecv, batch_isend_irecv. Conventions of MindSpore 2.10.0. Ranks are global."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, is_array
from collshim.messages import Recv, Send
from collshim.mindspore.communication.comm_func.arguments import peer_in
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.mint.distributed._arguments import group_and_peer, group_of, memory, require_rank
from collshim.mindspore.tensor import set_pending_work
from collshim.together import Together


def send(tensor: Array, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send ``tensor`` to rank ``dst``, whose next receive from this rank, with this tag, receives it.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``dst`` not an int, or ``group`` not a string.
        ValueError: if ``dst`` is this rank.
        KeyError: if the group does not exist, or ``dst`` is not in it.
        RuntimeError: if this rank is not initialised.
    """
    _post_send("send", tensor, dst, group, tag).wait()


def isend(tensor: Array, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Post a ``send`` and return at once; ``tensor`` may be changed after the handle's ``wait``."""
    return _post_send("isend", tensor, dst, group, tag)


def recv(tensor: Array, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive the next message from rank ``src`` to this rank, with this tag, in ``tensor``; return 0.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``src`` not an int, or ``group`` not a string.
        KeyError: if the group does not exist, or ``src`` is not in it.
        RuntimeError: if this rank is not initialised, or the message has a different shape or dtype.
    """
    _post_recv("recv", tensor, src, group, tag).wait()
    return 0


def irecv(tensor: Array, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Post a ``recv`` and return at once; ``tensor`` is complete after the handle's ``wait``."""
    return _post_recv("irecv", tensor, src, group, tag)


class P2POp:
    """One send or receive of ``batch_isend_irecv``.

    Args:
        op: "isend" or "irecv", or the function with that name.
        tensor: the tensor to send, or to write.
        peer: the global rank with which this rank exchanges the message.
        group: the group's name; None for all ranks.
        tag: must be 0.

    Raises:
        TypeError: if ``op`` is unknown, ``tensor`` is not a tensor, or ``peer`` not an int.
        NotImplementedError: if ``tag`` is not 0.
    """

    def __init__(
        self, op: str | Callable[..., Any], tensor: Array, peer: int, group: str | None = None, tag: int = 0
    ) -> None:
        name = op if isinstance(op, str) else getattr(op, "__name__", op)
        if name not in ("isend", "irecv"):
            refuse(TypeError, f"Expected op to be of type isend or irecv, but got {name}")
        if not is_array(tensor):
            refuse(TypeError, f"Expected tensor to be type of Tensor, but got {type(tensor)}.")
        require_rank("P2POp", "peer", peer)
        if tag != 0:
            refuse(NotImplementedError, f"tag is not support yet: should be 0, but got {tag!r}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag

    def _message(self) -> Send | Recv:
        """Return the message, with the peer's rank in the group."""
        rank = peer_in(group_of(self.group), self.peer)
        name = self.op if isinstance(self.op, str) else self.op.__name__
        if name == "isend":
            return Send(memory("isend", self.tensor), rank, self.tag)
        return Recv(rank, memory("irecv", self.tensor), self.tag)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[CommHandle]:
    """Post every send and receive of the list; return a list with one handle, which waits for all.

    Raises:
        TypeError: if the list is empty; if an entry is not a P2POp; if the entries have different groups.
        KeyError: if a peer is not in the group.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    if not p2p_op_list:
        refuse(TypeError, "p2p_op_list can not be empty list.")
    if not all(isinstance(operation, P2POp) for operation in p2p_op_list):
        refuse(TypeError, "The elements in p2p_op_list must be type of P2POp.")
    if len({operation.group for operation in p2p_op_list}) > 1:
        refuse(TypeError, "The group name in p2p_op_list must be consistent.")
    messages = [operation._message() for operation in p2p_op_list]
    works = group_of(p2p_op_list[0].group).communicator.batch(messages)
    for operation, message, work in zip(p2p_op_list, messages, works, strict=True):
        if isinstance(message, Recv):
            set_pending_work(operation.tensor, work)
    return [CommHandle(Together(works))]


def _post_send(function: str, tensor: Array, dst: int, group: str | None, tag: int) -> CommHandle:
    own = memory(function, tensor)
    require_rank(function, "dst", dst)
    members, peer = group_and_peer(group, dst, sends=True)
    return CommHandle(members.communicator.send(own, peer, tag=tag))


def _post_recv(function: str, tensor: Array, src: int, group: str | None, tag: int) -> CommHandle:
    out = memory(function, tensor)
    require_rank(function, "src", src)
    members, peer = group_and_peer(group, src)
    work = members.communicator.recv(peer, out=out, tag=tag)
    set_pending_work(tensor, work)
    return CommHandle(work)
