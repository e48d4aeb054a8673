"""all_gather, all_to_all and their single-tensor forms, differentiable. Conventions of torch 2.13.0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from collshim.arrays import Array, as_output, as_torch
from collshim.communicator import Communicator
from collshim.layout import concatenated, listed
from collshim.torch.distributed.arguments import arrays_of, require_tensor, same_dtype
from collshim.torch.distributed.forms import ints, parts_like, pieces
from collshim.torch.distributed.membership import Group, group_of, warn_outside
from collshim.torch.distributed.nn.calls import each, result_of, warn_deprecated
from collshim.torch.distributed.nn.graph import deliver, require_fit
from collshim.work import Work


def all_gather(tensor: Array, group: Group = None) -> tuple[Array, ...]:
    """Gather all ranks' tensors; return them on every rank, in the group's order.

    Args:
        tensor: an array with the same shape and dtype on every rank.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError: ``tensor`` is not an array.
        ValueError: the default group is not initialized.
        RuntimeError: the ranks' calls disagree, or a rank is missing.

    >>> sum(all_gather(x)).sum().backward()  # on n ranks  # doctest: +SKIP
    >>> x.grad  # n on every rank: every loss depends on every rank's x  # doctest: +SKIP
    """
    warn_deprecated("all_gather", "all_gather_single")
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_gather")
        return ()
    return tuple(result_of(process_group, lambda comm: comm.all_gather(tensor).then(each)))


def _all_gather_base(  # pyright: ignore[reportUnusedFunction]
    output_tensor: Array, input_tensor: Array, group: Group = None
) -> Array:
    """Gather all ranks' ``input_tensor``, end to end or stacked, into ``output_tensor``, and return it.

    Args:
        output_tensor: an array of ``(N * shape[0], *shape[1:])`` or ``(N, *shape)``, which is written.
        input_tensor: an array of the same shape, ``shape``, on every rank.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_gather``; the output's shape does not fit.
    """
    require_tensor("output_tensor", output_tensor)
    require_tensor("input_tensor", input_tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("_all_gather_base")
        return output_tensor
    source = as_torch(input_tensor)

    def call(comm: Communicator) -> Work[Tensor]:
        target = as_output(output_tensor, what="_all_gather_base: output_tensor")
        parts = parts_like("_all_gather_base: output_tensor", target, source, comm)
        require_fit("_all_gather_base: output_tensor", parts.detach(), source.expand(parts.shape))
        return comm.all_gather(source)

    return deliver(output_tensor, result_of(process_group, call).view(as_torch(output_tensor).shape))


def all_to_all(
    output_tensor_list: list[Array], input_tensor_list: list[Array], group: Group = None
) -> tuple[Array, ...]:
    """Send each rank's r-th part to rank r; return ``output_tensor_list``, with rank r's part in its r-th array.

    Args:
        output_tensor_list: one array per rank of the group, which is written. Shapes may differ, unlike over gloo.
        input_tensor_list: one array per rank of the group; rank s sends ``input_tensor_list[r]`` to rank r.
        group: the group of ranks that take part; None for all ranks.

    Returns:
        The outputs; if a gradient is needed, new tensors over their memory, which belong to the graph.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_gather``; dtypes differ; a list's length does not fit.
    """
    same_dtype(arrays_of("output_tensor_list", output_tensor_list), arrays_of("input_tensor_list", input_tensor_list))
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_to_all")
        return tuple(output_tensor_list)
    parts = [as_torch(part) for part in input_tensor_list]

    def call(comm: Communicator) -> Work[Sequence[Tensor]]:
        what = "all_to_all: output_tensor_list"
        outputs = [as_output(output, what=f"{what}[{rank}]") for rank, output in enumerate(output_tensor_list)]
        return comm.all_to_all(parts, shapes=[tuple(output.shape) for output in outputs])

    results = result_of(process_group, call)
    return tuple(deliver(output, part) for output, part in zip(output_tensor_list, results, strict=True))


def all_to_all_single(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
) -> Array:
    """Send each rank's r-th piece of ``input`` to rank r; return ``output``, with the pieces end to end in rank order.

    Args:
        output: an array, which is cut along dimension 0 into one piece per rank of the group, and written.
        input: an array, which is cut in the same way; the r-th piece goes to rank r.
        output_split_sizes, input_split_sizes: the lengths of the pieces; None, or empty, for equal ones.
        group: the group of ranks that take part; None for all ranks.

    Returns:
        ``output``; if a gradient is needed, a new tensor over its memory, which belongs to the graph.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_gather``; dtypes differ; the sizes do not fit.
    """
    warn_deprecated("all_to_all_single")
    require_tensor("output", output)
    require_tensor("input", input)
    same_dtype(output, input)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_to_all_single")
        return output
    output_sizes = ints("output_split_sizes", output_split_sizes)
    input_sizes = ints("input_split_sizes", input_split_sizes)

    def call(comm: Communicator) -> Work[Tensor]:
        target = as_output(output, what="all_to_all_single: output")
        output_parts = pieces("all_to_all_single: output", target.detach(), output_sizes, comm)
        parts = pieces("all_to_all_single: input", as_torch(input), input_sizes, comm)
        if isinstance(output_parts, Tensor) and isinstance(parts, Tensor):
            require_fit("all_to_all_single: output", output_parts, parts)
            return comm.all_to_all(parts).then(concatenated)
        shapes = [tuple(piece.shape) for piece in listed(output_parts)]
        return comm.all_to_all(listed(parts), shapes=shapes).then(torch.cat)

    return deliver(output, result_of(process_group, call))
