"""send, recv, isend, irecv. Conventions of torch 2.13.0.

Beyond gloo: ``isend`` and ``irecv`` to the rank itself, which torch documents, and tensors that are not contiguous. A
rank outside the group is an error (gloo: a segmentation fault), and so is a message of another shape or dtype than the
receiver's tensor (gloo: an end of the process, or a tensor filled in part).
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
    """The destination's ``recv`` gets ``tensor``; returns when ``tensor`` may be changed again.

    Args:
        tensor: of any layout.
        dst, group_dst: the destination, as a global rank or as a rank in the group: one of the two.
        group: None for all ranks.
        tag: a number that the receiver's ``tag`` must equal.

    Raises:
        TypeError: no array.
        ValueError: a destination given twice or not at all, or outside the group; this rank itself, or this rank is
            outside the group; no default group yet.
        RuntimeError: no such destination; the receiver expects something else, or did not come.
    """
    work = repeat_message(group, SEND, tensor, (dst, group_dst), tag)
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
    """``tensor`` holds what the source sent.

    Args:
        tensor: in the shape and dtype of what is sent.
        src, group_src: the source, as a global rank or as a rank in the group; any rank where neither is given.
        group: None for all ranks.
        tag: a number that the sender's ``tag`` must equal.

    Returns:
        The source's global rank; -1, with a UserWarning, on a rank outside the group.

    Raises:
        TypeError: no array.
        ValueError: a source given twice, or outside the group; no default group yet.
        RuntimeError: no such source; it sent something else, or nothing.
    """
    work = UNKNOWN if src is None else repeat_message(group, RECV, tensor, (src, group_src), tag)
    if src is not None and work is not UNKNOWN:
        work.wait()
        return src
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("irecv")  # the name that torch 2.13 warns with
        return -1
    source = None if src is None and group_src is None else rank_in(process_group, src, group_src)
    work = _post_recv(process_group, tensor, source, tag)
    work.wait()
    if source is None:
        source = work.source_rank()
        refuse_self(process_group, source, "source")
    return process_group.communicator.ranks[source]


@overridable("tensor")
def isend(
    tensor: Array, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """``send`` that returns at once; ``tensor`` may be changed after the Work's ``wait``.

    The destination may be this rank itself, where an ``irecv`` receives it.

    Args:
        tensor, dst, group, tag, group_dst: as for ``send``.

    Returns:
        A Work, whose ``wait()`` is True; None, with a UserWarning, on a rank outside the group.

    Raises:
        TypeError, ValueError, RuntimeError: as ``send``; what goes wrong between the ranks, by ``wait``.
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
    """``recv`` that returns at once; ``tensor`` holds what was sent after the Work's ``wait``.

    Args:
        tensor, src, group, tag, group_src: as for ``recv``.

    Returns:
        A Work, whose ``wait()`` is True and whose ``source_rank()`` then is the source's rank in the group; None,
        with a UserWarning, on a rank outside the group.

    Raises:
        TypeError, ValueError, RuntimeError: as ``recv``; what goes wrong between the ranks, by ``wait``.
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
    """The rank itself is no partner of a blocking send or receive."""
    if rank == process_group.rank():
        text = f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process"
        refuse(ValueError, text)
