"""all_to_all and all_to_all_single: every rank has a part for each rank.

Conventions of torch 2.13.0. Beyond gloo: unequal sizes in the lists of ``all_to_all``, as torch documents them, and
non-contiguous tensors. If the number of ranks does not divide the length of an ``all_to_all_single``, an error is
raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.arrays import Array
from collshim.calls.collective import ALL_TO_ALL
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import require_list, require_tensor, same_dtype
from collshim.torch.distributed.forms import ints
from collshim.torch.distributed.membership import Group, group_of, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, post, repeat, unless_list
from collshim.torch.distributed.work import Work


@overridable("input_tensor_list")
def all_to_all(
    output_tensor_list: list[Array], input_tensor_list: list[Array], group: Group = None, async_op: bool = False
) -> Work | None:
    """Send ``input_tensor_list[r]`` to rank r, which receives rank s's tensor in ``output_tensor_list[s]``.

    Args:
        output_tensor_list: a list with one array per rank of the group; the arrays are written, not replaced.
        input_tensor_list: a list with one array per rank of the group; ``input_tensor_list[r]`` goes to rank r. Shapes
            may differ if each output has the shape of the part that it receives.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a Work, whose ``wait()`` returns True when the outputs hold the result. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not a list of arrays.
        ValueError: dtypes differ; the default group is not initialized.
        RuntimeError: a list's length does not fit; the ranks' calls disagree, or a rank is missing.

    >>> input = list((torch.arange(4) + rank * 4).chunk(4))  # four ranks  # doctest: +SKIP
    >>> output = list(torch.empty([4], dtype=torch.int64).chunk(4))  # doctest: +SKIP
    >>> dist.all_to_all(output, input)  # doctest: +SKIP
    >>> output  # rank 1  # doctest: +SKIP
    [tensor([1]), tensor([5]), tensor([9]), tensor([13])]
    """
    places, parts = output_tensor_list, input_tensor_list
    if type(places) is list and type(parts) is list:
        result: Work | None = repeat(group, async_op, places, ALL_TO_ALL, parts, places)
        if result is not UNKNOWN:
            return result
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_to_all")
        return None
    require_list("output_tensor_list", output_tensor_list)
    require_list("input_tensor_list", input_tensor_list)
    places, parts = same_dtype(output_tensor_list, input_tensor_list)
    call, arguments = collectives.all_to_all, (places, parts)
    return post(process_group, async_op, "all_to_all", call, arguments, output_tensor_list, input_tensor_list)


@overridable("input")
def all_to_all_single(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send the r-th piece of ``input`` to rank r, which receives the pieces in ``output``, end to end in rank order.

    Args:
        output: an array, which is cut along dimension 0 into one piece per rank of the group.
        input: an array, which is cut in the same way; the r-th piece goes to rank r.
        output_split_sizes: the lengths of the output's pieces; None, or empty, for equal ones.
        input_split_sizes: the lengths of the input's pieces; None, or empty, for equal ones.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not an array; the sizes are not ints.
        ValueError: dtypes differ; the default group is not initialized.
        RuntimeError: sizes do not fit dimension 0, or, without sizes, the number of ranks does not divide it (torch
            over gloo then delivers garbage); the ranks' calls disagree, or a rank is missing.
    """
    splits = _plain_splits(input_split_sizes, output_split_sizes)
    result: Work | None = repeat(group, async_op, output, ALL_TO_ALL, unless_list(input), unless_list(output), splits)
    if result is not UNKNOWN:
        return result
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_to_all_single")
        return None
    require_tensor("output", output)
    require_tensor("input", input)
    target, source = same_dtype(output, input)
    output_sizes = ints("output_split_sizes", output_split_sizes)
    input_sizes = ints("input_split_sizes", input_split_sizes)
    call, arguments = collectives.all_to_all_single, (target, source, output_sizes, input_sizes)
    return post(process_group, async_op, "all_to_all", call, arguments, [output], [input])


def _plain_splits(input_sizes: Any, output_sizes: Any) -> Any:
    """Return both as tuples if both are lists with elements, None if both are None, and an empty tuple otherwise."""
    if type(input_sizes) is list and type(output_sizes) is list:
        return (tuple(input_sizes), tuple(output_sizes)) if input_sizes and output_sizes else ()
    return None if input_sizes is None and output_sizes is None else ()
