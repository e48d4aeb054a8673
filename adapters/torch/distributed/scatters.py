"""broadcast and scatter: from one rank to the others. Conventions of torch 2.13.0."""

from __future__ import annotations

from collshim.adapting.refusing import refuse
from collshim.arrays import Array
from collshim.calls.collective import BROADCAST, SCATTER
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import list_or_nothing, require_tensor, same_dtype
from collshim.torch.distributed.membership import Group, group_of, rank_in, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, plain_list, post, repeat
from collshim.torch.distributed.work import Work


@overridable("tensor")
def broadcast(
    tensor: Array,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the source's ``tensor`` into every rank's ``tensor``.

    Args:
        tensor: an array with the same shape and dtype on every rank.
        src, group_src: the source, as a global rank or as a rank in the group; pass exactly one of them.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a Work, whose ``wait()`` returns True when ``tensor`` holds the result. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array.
        ValueError: both or neither of ``src`` and ``group_src`` are passed; the source is outside the group; the
            default group is not initialized.
        RuntimeError: there is no such source; the ranks' calls disagree, or a rank is missing.
    """
    result: Work | None = repeat(group, async_op, tensor, BROADCAST, tensor, tensor, None, (src, group_src))
    if result is not UNKNOWN:
        return result
    process_group = group_of(group)
    root = rank_in(process_group, src, group_src)
    require_tensor("tensor", tensor)
    if process_group is None:
        warn_outside("broadcast")
        return None
    return post(process_group, async_op, "broadcast", collectives.broadcast, (tensor, root), [tensor])


@overridable("tensor")
def scatter(
    tensor: Array,
    scatter_list: list[Array] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Send the source's ``scatter_list[r]`` to rank r's ``tensor``.

    Args:
        tensor: the output, with the shape of ``scatter_list[r]``.
        scatter_list: on the source, a list with one array per rank of the group; on other ranks None, or empty.
        src, group_src: the source, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array, or ``scatter_list`` not a list of arrays.
        ValueError: the source has no list, or another rank has one; dtypes differ; both ``src`` and ``group_src`` are
            passed; the default group is not initialized.
        RuntimeError: the list's length or a shape does not fit; the ranks' calls disagree, or a rank is missing.
    """
    ranks = (0 if src is None and group_src is None else src, group_src)
    result: Work | None = repeat(group, async_op, tensor, SCATTER, plain_list(scatter_list), tensor, None, ranks)
    if result is not UNKNOWN:
        return result
    require_tensor("tensor", tensor)
    output, parts = same_dtype(tensor, list_or_nothing("scatter_list", scatter_list))
    process_group = group_of(group)
    root = rank_in(process_group, *ranks)
    if process_group is None:
        warn_outside("scatter")
        return None
    is_root = root == process_group.rank()
    if is_root and not parts:
        refuse(ValueError, "Argument ``scatter_list`` must be specified on source rank.")
    if parts and not is_root:
        refuse(ValueError, "Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    arguments = (output, parts, root)
    return post(process_group, async_op, "scatter", collectives.scatter, arguments, [tensor], scatter_list or [])
