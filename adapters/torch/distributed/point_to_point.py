"""send, recv, isend, irecv. Conventions of torch 2.13.0.

Beyond gloo: ``isend`` and ``irecv`` to the rank itself, which torch documents, and non-contiguous tensors. A rank
outside the group raises an error (in gloo, it is a segmentation fault). So does a message whose shape or dtype differs
from the receiver's tensor (in gloo, the process ends, or a part of the tensor is filled).
"""

from __future__ import annotations

from collshim.adapting.refusing import refuse
from collshim.arrays import Array
from collshim.calls.collective import RECV, SEND
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import require_tensor
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, rank_in, refuse_outside, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, repeat_message, start
from collshim.torch.distributed.work import Work


@overridable("tensor")
def send(
    tensor: Array, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send ``tensor`` to the destination; return when the program may change ``tensor`` again.

    Args:
        tensor: an array of any layout.
        dst, group_dst: the destination, as a global rank or as a rank in the group; pass exactly one of them.
        group: the group of ranks that take part; None for all ranks.
        tag: a number, which must equal the receiver's ``tag``.

    Raises:
        TypeError: ``tensor`` is not an array.
        ValueError: both or neither of ``dst`` and ``group_dst`` are passed; the destination is outside the group, or is
            this rank; this rank is outside the group; the default group is not initialized.
        RuntimeError: there is no such destination; the receiver's call does not match, or the receiver did not arrive.
    """
    work = repeat_message(group, SEND, tensor, (dst, group_dst), tag, waits=True)
    if work is not UNKNOWN:
        work.wait()
        return
    process_group = group_of(group)
    if process_group is None:
        refuse_outside()
    destination = rank_in(process_group, dst, group_dst)
    refuse_self(process_group, destination, "destination")
    require_tensor("tensor", tensor)
    _post_send(process_group, tensor, destination, tag).wait()


@overridable("tensor")
def recv(tensor: Array, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive the source's tensor in ``tensor``.

    Args:
        tensor: an array with the shape and dtype of the message.
        src, group_src: the source, as a global rank or as a rank in the group; any rank if neither is passed.
        group: the group of ranks that take part; None for all ranks.
        tag: a number, which must equal the sender's ``tag``.

    Returns:
        The source's global rank. On a rank outside the group: -1, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array.
        ValueError: both ``src`` and ``group_src`` are passed; the source is outside the group; the default group is not
            initialized.
        RuntimeError: there is no such source; it sent a message that does not match, or none.
    """
    work = repeat_message(group, RECV, tensor, (src, group_src), tag, waits=src is not None)
    if src is not None and work is not UNKNOWN:
        work.wait()
        return src
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("irecv")  # the name in torch 2.13's warning
        return -1
    source = None if src is None and group_src is None else rank_in(process_group, src, group_src)
    if work is UNKNOWN:
        work = _post_recv(process_group, tensor, source, tag)
    work.wait()
    if source is None:
        source = work.source_rank()
        refuse_self(process_group, source, "source")
    return int(process_group.communicator.ranks[source])


@overridable("tensor")
def isend(
    tensor: Array, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Post a ``send`` and return at once; ``tensor`` may be changed after the Work's ``wait``.

    The destination may be this rank itself, if an ``irecv`` receives the message.

    Args:
        tensor, dst, group, tag, group_dst: as for ``send``.

    Returns:
        A Work, whose ``wait()`` returns True. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``send``; errors between the ranks are raised by ``wait``.
    """
    work: Work | None = repeat_message(group, SEND, tensor, (dst, group_dst), tag)
    if work is not UNKNOWN:
        return work
    process_group = group_of(group)
    destination = rank_in(process_group, dst, group_dst)
    require_tensor("tensor", tensor)
    if process_group is None:
        warn_outside("isend")
        return None
    return _post_send(process_group, tensor, destination, tag)


@overridable("tensor")
def irecv(
    tensor: Array, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Post a ``recv`` and return at once; after the Work's ``wait``, ``tensor`` holds the message.

    Args:
        tensor, src, group, tag, group_src: as for ``recv``.

    Returns:
        A Work, whose ``wait()`` returns True and whose ``source_rank()`` then returns the source's rank in the group.
        On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``recv``; errors between the ranks are raised by ``wait``.
    """
    work: Work | None = repeat_message(group, RECV, tensor, (src, group_src), tag)
    if work is not UNKNOWN:
        return work
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("irecv")
        return None
    source = None if src is None and group_src is None else rank_in(process_group, src, group_src)
    return _post_recv(process_group, tensor, source, tag)


def _post_send(process_group: ProcessGroup, tensor: Array, destination: int, tag: int) -> Work:
    return start(process_group, "send", collectives.send, (tensor, destination, tag), [tensor])


def _post_recv(process_group: ProcessGroup, tensor: Array, source: int | None, tag: int) -> Work:
    title = "recvAnySource" if source is None else "recv"
    return start(process_group, title, collectives.recv, (tensor, source, tag), [tensor])


def refuse_self(process_group: ProcessGroup, rank: int, what: str) -> None:
    """Refuse a blocking send or receive between a rank and itself."""
    if rank == process_group.rank():
        text = f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process"
        refuse(ValueError, text)
