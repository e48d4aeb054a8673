"""all_gather, all_gather_single, all_gather_into_tensor, gather.

Conventions of torch 2.13.0. Beyond gloo: unequal shapes in the lists, the stacked form of ``all_gather_single``, 0-d
inputs, complex numbers in ``gather``, every dtype.
"""

from __future__ import annotations

from collshim.adapting.refusing import refuse
from collshim.arrays import Array
from collshim.calls.collective import ALL_GATHER, GATHER
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import list_or_nothing, require_list, require_tensor, same_dtype, warn_renamed
from collshim.torch.distributed.coalescing import post_or_hold
from collshim.torch.distributed.membership import Group, group_of, rank_in, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, plain_list, post, repeat
from collshim.torch.distributed.work import Work, parts_of


@overridable("tensor")
def all_gather(tensor_list: list[Array], tensor: Array, group: Group = None, async_op: bool = False) -> Work | None:
    """Gather rank r's ``tensor`` into the memory of every rank's ``tensor_list[r]``.

    Args:
        tensor_list: a list with one array per rank of the group; ``tensor_list[r]`` has the shape of rank r's
            ``tensor``. The shapes may differ between ranks.
        tensor: this rank's array, of any layout.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a Work, whose ``wait()`` returns True when the list holds the result. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array, or ``tensor_list`` not a list of arrays.
        ValueError: dtypes differ; the default group is not initialized.
        RuntimeError: the list's length or a shape does not fit; the ranks' calls disagree, or a rank is missing.
    """
    parts = tensor_list if type(tensor_list) is list else None
    result: Work | None = repeat(group, async_op, tensor_list, ALL_GATHER, tensor, parts)
    if result is not UNKNOWN:
        return result
    require_list("tensor_list", tensor_list)
    require_tensor("tensor", tensor)
    parts, own = same_dtype(tensor_list, tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_gather")
        return None
    return post(process_group, async_op, "all_gather", collectives.all_gather, (parts, own), tensor_list, [tensor])


@overridable("input_tensor")
def all_gather_single(
    output_tensor: Array, input_tensor: Array, group: Group = None, async_op: bool = False
) -> Work | None:
    """Gather all ranks' ``input_tensor`` into every rank's ``output_tensor``, in rank order.

    Args:
        output_tensor: an array for the parts end to end, ``(N * shape[0], *shape[1:])`` for N ranks, or stacked, ``(N,
            *shape)``; gloo accepts only the first form.
        input_tensor: an array of the same shape, ``shape``, on every rank; from 0-d inputs, the output is ``(N,)``.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a Work, whose ``result()`` is the output cut into one view per rank. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the default group is not initialized.
        RuntimeError: shapes or dtypes do not fit; the ranks' calls disagree, or a rank is missing.
    """
    place = None if type(output_tensor) is list else output_tensor
    result: Work | None = repeat(group, async_op, output_tensor, ALL_GATHER, input_tensor, place)
    if result is not UNKNOWN:
        return result
    require_tensor("input_tensor", input_tensor)
    require_tensor("output_tensor", output_tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_gather_single")
        return None
    call, arguments = collectives.all_gather_single, (output_tensor, input_tensor)
    results = parts_of(output_tensor, process_group.size()) if async_op else None
    return post_or_hold(process_group, async_op, "all_gather_single", call, arguments, *arguments, results)


def all_gather_into_tensor(
    output_tensor: Array, input_tensor: Array, group: Group = None, async_op: bool = False
) -> Work | None:
    """Call ``all_gather_single`` by its name up to torch 2.12, with torch 2.13's FutureWarning."""
    warn_renamed("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _all_gather_base(  # pyright: ignore[reportUnusedFunction]
    output_tensor: Array, input_tensor: Array, group: Group = None, async_op: bool = False
) -> Work | None:
    """Call ``all_gather_single`` by its first name, with torch 2.13's FutureWarning."""
    warn_renamed("_all_gather_base", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


@overridable("tensor")
def gather(
    tensor: Array,
    gather_list: list[Array] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather rank r's ``tensor`` into the destination's ``gather_list[r]``.

    Args:
        tensor: this rank's array.
        gather_list: on the destination, a list with one array per rank of the group; on other ranks None, or empty.
        dst, group_dst: the destination, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array, or ``gather_list`` not a list of arrays.
        ValueError: the destination has no list, or another rank has one; dtypes differ; both ``dst`` and ``group_dst``
            are passed; the default group is not initialized.
        RuntimeError: the list's length or a shape does not fit; the ranks' calls disagree, or a rank is missing.
    """
    ranks = (0 if dst is None and group_dst is None else dst, group_dst)
    result: Work | None = repeat(
        group, async_op, gather_list or [], GATHER, tensor, plain_list(gather_list), None, ranks
    )
    if result is not UNKNOWN:
        return result
    require_tensor("tensor", tensor)
    parts, own = same_dtype(list_or_nothing("gather_list", gather_list), tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("gather")
        return None
    root = rank_in(process_group, *ranks)
    is_root = root == process_group.rank()
    if is_root and not parts:
        refuse(ValueError, "Argument ``gather_list`` must be specified on destination rank.")
    if parts and not is_root:
        refuse(ValueError, "Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    arguments = (own, parts, root)
    return post(process_group, async_op, "gather", collectives.gather, arguments, gather_list or [], [tensor])


@overridable("tensor")
def gather_single(
    tensor: Array,
    gather_tensor: Array | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather all ranks' ``tensor`` into the destination's ``gather_tensor``, in rank order. From torch 2.15.

    Args:
        tensor: an array, with the same shape on every rank.
        gather_tensor: on the destination, a contiguous array with as many elements as all ranks' tensors together;
            ignored on other ranks.
        dst, group_dst: the destination, as a global rank or as a rank in the group; global rank 0 by default.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the destination has no ``gather_tensor``; dtypes differ; both ``dst`` and ``group_dst`` are passed;
            the default group is not initialized.
        RuntimeError: ``gather_tensor`` does not have this number of elements, or is not contiguous; the ranks' calls
            disagree, or a rank is missing.
    """
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("gather_single")
        return None
    root = rank_in(process_group, 0 if dst is None and group_dst is None else dst, group_dst)
    whole = gather_tensor if root == process_group.rank() else None
    if root == process_group.rank():
        if whole is None:
            refuse(ValueError, "gather_tensor must be specified on the destination rank")
        require_tensor("gather_tensor", whole)
        same_dtype(whole, tensor)
    arguments = (tensor, whole, root)
    outputs = [] if whole is None else [whole]
    return post(process_group, async_op, "gather", collectives.gather_single, arguments, outputs, [tensor])


def gather_into_tensor(
    tensor: Array,
    gather_tensor: Array | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Call ``gather_single`` by its other name in torch 2.15."""
    return gather_single(tensor, gather_tensor, dst, group, async_op, group_dst)
