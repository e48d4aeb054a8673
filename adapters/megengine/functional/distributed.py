"""MegEngine's collectives (source: MegEngine 1.13.0, ``megengine.functional.distributed``).

In every shape below, ``size`` is the number of ranks in ``group``. Parts are joined and split in the order of the
group's ranks, and the root is the first rank. Results are new arrays of the kind of the rank's input; ``inp`` does not
change.

Gradients are those of the sum of all ranks' losses. A rank without an output (``reduce_sum`` and ``gather`` except
on the root, ``remote_send``) takes part in the other ranks' backward pass by calling ``GradManager.backward()`` without
an argument.

Before anything is sent, every operation raises AssertionError without ``init_process_group`` or if ``group`` is not a
``Group`` (``broadcast`` and ``scatter`` raise TypeError, ``reduce_scatter_sum`` and ``all_to_all`` AttributeError), and
RuntimeError for an empty ``inp`` or an unknown ``device``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from collshim.arrays import Array
from collshim.calls.validation import rank_of
from collshim.errors import ArgumentValueError
from collshim.layout import concatenated, split
from collshim.megengine.core.tensor.values import value_of
from collshim.megengine.distributed._membership import joined
from collshim.megengine.distributed._ranks import WORLD, Group, communicator
from collshim.megengine.functional._arrays import input_tensor, result_converter
from collshim.megengine.functional._axes import require_axis, require_concatenable, require_counted, require_divisible
from collshim.megengine.functional._gradient import receive, result_everywhere, result_on_root, send

__all__ = [
    "all_gather",
    "all_reduce_max",
    "all_reduce_min",
    "all_reduce_sum",
    "all_to_all",
    "broadcast",
    "collective_comm",
    "gather",
    "reduce_scatter_sum",
    "reduce_sum",
    "remote_recv",
    "remote_send",
    "scatter",
]


def reduce_sum(inp: Array, group: Group | None = WORLD, device: str | None = None) -> Array:
    """Return the sum over the ranks, on the root only.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        On the root, the sum, with ``inp``'s shape; on the other ranks, None.

    Gradient: the root's gradient, on every rank; None on every rank if the root has none.

    >>> reduce_sum(tensor([rank]))  # two ranks  # doctest: +SKIP
    tensor([1])                     # rank 0; on rank 1 None
    """
    comm, convert = communicator(group), result_converter(inp, device)
    result = result_on_root(comm, comm.reduce, input_tensor("reduce_sum", inp, comm))
    return None if result is None else convert(result)


def broadcast(inp: Array, group: Group | None = WORLD, device: str | None = None) -> Array:
    """Return the root's ``inp`` on every rank.

    Args:
        inp: the root's input. On the other ranks it is not read and may be None, but the result is of its kind.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        An array with the root's shape and dtype.

    Gradient: on the root, the sum of all ranks' gradients. The other ranks have none, but must call
    ``GradManager.backward``.

    >>> broadcast(tensor([rank]))  # two ranks  # doctest: +SKIP
    tensor([0])                    # both
    """
    comm, convert = communicator(group, attribute="rank"), result_converter(inp, device)
    tensor: Any = input_tensor("broadcast", inp, comm) if comm.rank == 0 else None
    return convert(result_everywhere(comm.broadcast(tensor, root=0, discovers=True), tensor))


def all_gather(inp: Array, group: Group | None = WORLD, device: str | None = None, axis: int = 0) -> Array:
    """Return all ranks' arrays, joined along ``axis``, on every rank.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.
        axis: the number of the axis, which must not be negative.

    Returns:
        An array whose ``axis`` is ``size`` times as long; its shape is ``(size,)`` if ``inp`` is 0-d.

    Gradient: ``reduce_scatter_sum`` of all ranks' gradients along ``axis``.

    Raises:
        IndexError: ``inp`` has no such axis.
        RuntimeError: ``axis`` is negative.

    >>> all_gather(tensor([rank]))  # two ranks  # doctest: +SKIP
    tensor([0, 1])                  # both
    """
    comm, convert = communicator(group), result_converter(inp, device)
    tensor = input_tensor("all_gather", inp, comm)
    if tensor.dim() > 0 or axis != 0:
        require_axis("all_gather", axis, tensor, comm)
    return convert(result_everywhere(comm.all_gather(tensor).then(partial(concatenated, axis=axis)), tensor))


def reduce_scatter_sum(inp: Array, group: Group | None = WORLD, device: str | None = None, axis: int = 0) -> Array:
    """Return one part of the sum over the ranks, split along ``axis``, on each rank.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.
        axis: the number of the axis, which must not be negative; the axis's length must be a multiple of ``size``.

    Returns:
        An array whose ``axis`` is ``size`` times shorter: the part of the sum at this rank's position in the group.

    Gradient: ``all_gather`` of all ranks' gradients along ``axis``.

    Raises:
        AssertionError: ``axis`` cannot be cut into ``size`` equal parts.
        IndexError: ``inp`` has no such axis.

    >>> reduce_scatter_sum(tensor([0, 1]))  # two ranks  # doctest: +SKIP
    tensor([0])                             # rank 0; on rank 1 tensor([2])
    """
    comm, convert = communicator(group, attribute="size"), result_converter(inp, device)
    tensor = input_tensor("reduce_scatter_sum", inp, comm)
    require_divisible("reduce_scatter_sum", axis, tensor, comm)
    return convert(result_everywhere(comm.reduce_scatter(split(tensor, comm.size, axis)), tensor))


def all_reduce_sum(inp: Array, group: Group | None = WORLD, device: str | None = None) -> Array:
    """Return the sum over the ranks on every rank, bitwise equal on all ranks.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        An array with ``inp``'s shape. Integers wrap around.

    Gradient: the sum of all ranks' gradients. So if every rank reduces a loss and then differentiates the result, the
    gradient is ``size`` times as large.

    >>> all_reduce_sum(tensor([1, 2]) + 2 * rank)  # two ranks  # doctest: +SKIP
    tensor([4, 6])                                 # both
    """
    return _all_reduced("sum", inp, group, device)


def all_reduce_max(inp: Array, group: Group | None = WORLD, device: str | None = None) -> Array:
    """Return the greatest value over the ranks, element by element, on every rank.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        An array with ``inp``'s shape.

    Gradient: the sum of all ranks' gradients at elements in which this rank has the greatest value, and 0 at other
    elements; if ranks tie, the gradient on each of them is the whole sum.

    >>> all_reduce_max(tensor([1, 2]) + 2 * rank)  # two ranks  # doctest: +SKIP
    tensor([3, 4])                                 # both
    """
    return _all_reduced("max", inp, group, device)


def all_reduce_min(inp: Array, group: Group | None = WORLD, device: str | None = None) -> Array:
    """Return the least value over the ranks, element by element, on every rank.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        An array with ``inp``'s shape.

    Gradient: the sum of all ranks' gradients at elements in which this rank has the least value, and 0 at other
    elements; if ranks tie, the gradient on each of them is the whole sum.

    >>> all_reduce_min(tensor([1, 2]) + 2 * rank)  # two ranks  # doctest: +SKIP
    tensor([1, 2])                                 # both
    """
    return _all_reduced("min", inp, group, device)


def gather(inp: Array, group: Group | None = WORLD, device: str | None = None, axis: int = 0) -> Array:
    """Return all ranks' arrays, joined along ``axis``, on the root only.

    Args:
        inp: an array with the same shape and dtype on all ranks, and at least one axis.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.
        axis: the number of the axis, which must not be negative.

    Returns:
        On the root, an array whose ``axis`` is ``size`` times as long; on the other ranks, None.

    Gradient: this rank's part of the root's gradient; None on every rank if the root has none.

    Raises:
        AssertionError: ``inp`` has no such axis.
        RuntimeError: ``axis`` is negative.

    >>> gather(tensor([rank]))  # two ranks  # doctest: +SKIP
    tensor([0, 1])              # rank 0; on rank 1 None
    """
    comm, convert = communicator(group), result_converter(inp, device)
    tensor = input_tensor("gather", inp, comm)
    require_concatenable("gather", axis, tensor, comm)
    result = result_on_root(comm, comm.gather, tensor)
    return None if result is None else convert(concatenated(result, axis))


def scatter(inp: Array, group: Group | None = WORLD, device: str | None = None, axis: int = 0) -> Array:
    """Split the root's ``inp`` along ``axis``, and return one part on each rank.

    Args:
        inp: the root's input. On the other ranks it is not read and may be None, but the result is of its kind.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.
        axis: the number of the axis, which must not be negative; the axis's length must be a multiple of ``size``.

    Returns:
        An array whose ``axis`` is ``size`` times shorter: the part at this rank's position in the group.

    Gradient: on the root, all ranks' gradients, joined along ``axis``. The other ranks have none, but must call
    ``GradManager.backward``.

    Raises:
        AssertionError: on the root, ``axis`` cannot be split into ``size`` equal parts.
        IndexError: ``inp`` has no such axis. The other ranks do not know its shape, and raise an error when the root's
            call fails.

    >>> scatter(tensor([0, 1]) + 2 * rank)  # two ranks  # doctest: +SKIP
    tensor([0])                             # rank 0; on rank 1 tensor([1])
    """
    comm, convert = communicator(group, attribute="rank"), result_converter(inp, device)
    if comm.rank != 0:
        require_counted("scatter", axis, comm)
        return convert(result_everywhere(comm.scatter(None, root=0, discovers=True), None))
    tensor = input_tensor("scatter", inp, comm)
    require_divisible("scatter", axis, tensor, comm)
    parts = split(tensor, comm.size, axis)
    return convert(result_everywhere(comm.scatter(parts, root=0, discovers=True), tensor))


def all_to_all(
    inp: Array,
    group: Group | None = WORLD,
    device: str | None = None,
    split_axis: int = 0,
    concat_axis: int = 0,
) -> Array:
    """Split ``inp`` along ``split_axis``, send one part to every rank, and return the received parts joined.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.
        split_axis: the number of the axis, which must not be negative; the axis's length must be a multiple of
            ``size``.
        concat_axis: the axis that the parts are joined along, in the order of the group.

    Returns:
        An array whose ``split_axis`` is ``size`` times shorter, and whose ``concat_axis`` is ``size`` times longer.

    Gradient: ``all_to_all`` of all ranks' gradients with the two axes swapped.

    Raises:
        AssertionError: ``split_axis`` cannot be split into ``size`` equal parts.
        IndexError: ``inp`` has no such axis.

    >>> all_to_all(tensor([0, 1]) + 2 * rank)  # two ranks  # doctest: +SKIP
    tensor([0, 2])                             # rank 0; on rank 1 tensor([1, 3])
    """
    comm, convert = communicator(group, attribute="size"), result_converter(inp, device)
    tensor = input_tensor("all_to_all", inp, comm)
    require_divisible("all_to_all", split_axis, tensor, comm, "split_axis")
    require_axis("all_to_all", concat_axis, tensor, comm, "concat_axis")
    parts = split(tensor, comm.size, split_axis)
    return convert(result_everywhere(comm.all_to_all(parts).then(partial(concatenated, axis=concat_axis)), tensor))


def remote_send(inp: Array, dest_rank: int) -> None:
    """Send ``inp`` to a rank of the world, which calls ``remote_recv``; copy ``inp`` and return at once.

    Args:
        inp: an array with any shape and dtype.
        dest_rank: the global rank that receives.

    Gradient: the receiver's gradient; ``GradManager.backward()`` on this rank waits for it.

    >>> remote_send(tensor([1.0]), 1)  # rank 0  # doctest: +SKIP
    >>> remote_recv(0)  # rank 1  # doctest: +SKIP
    tensor([1.])
    """
    comm = joined().world.communicator
    send(comm, dest_rank, input_tensor("remote_send", inp, comm))


def remote_recv(src_rank: int, device: str | None = None, inp: Array = None) -> Array:
    """Receive an array that one rank of the world sends with ``remote_send``; a rank's arrays arrive in order.

    Args:
        src_rank: the global rank that sends.
        device: the device of the result.
        inp: an array whose kind the result has; its shape and dtype are not read. None for a MegEngine tensor, or for a
            torch tensor in a program that has made no MegEngine tensor and that no ``launcher`` started.

    Returns:
        An array with the sender's shape and dtype; the shape is ``(1,)`` if the sender's array is 0-d.

    Gradient: it is sent to the sender, so this rank must call ``GradManager.backward`` too.

    Raises:
        AssertionError: ``init_process_group`` was not called; AttributeError if ``src_rank`` is 0.
        TypeError, IndexError: ``src_rank`` is not a rank.
    """
    convert = result_converter(inp, device)
    without_world = AttributeError if src_rank == 0 else AssertionError  # as in MegEngine
    comm = joined(without_world).world.communicator
    result = receive(comm, rank_of(comm, "remote_recv", "src_rank", src_rank))
    return convert(result.reshape(1) if result.dim() == 0 else result)


def collective_comm(inp: Array, mode: Any, group: Group, device: str | None) -> Array:
    """Call a collective by its mode; every rank has an output.

    Args:
        inp: an array with the same shape and dtype on all ranks.
        mode: a name such as ``"ALL_GATHER"``, or an object whose ``name`` is one.
        group: the ranks that take part, each of which calls this.
        device: the device of the result; None for the device of ``inp``.

    Returns:
        The collective's result, along axis 0; a single zero if the collective returns None.
    """
    name = str(getattr(mode, "name", mode))
    if name not in _MODES:
        raise ArgumentValueError(f"collective_comm: mode is {mode!r}, should be one of {', '.join(_MODES)}")
    result = _MODES[name](inp, group, device)
    return result_converter(inp, device)(value_of(inp).new_zeros(1)) if result is None else result


_MODES: dict[str, Callable[[Array, Group, str | None], Array]] = {
    "REDUCE_SUM": reduce_sum,
    "BROADCAST": broadcast,
    "ALL_GATHER": all_gather,
    "REDUCE_SCATTER_SUM": reduce_scatter_sum,
    "ALL_REDUCE_SUM": all_reduce_sum,
    "ALL_REDUCE_MAX": all_reduce_max,
    "ALL_REDUCE_MIN": all_reduce_min,
    "GATHER": gather,
    "SCATTER": scatter,
    "ALL_TO_ALL": all_to_all,
}


def _all_reduced(op: str, inp: Array, group: Group | None, device: str | None) -> Array:
    comm, convert = communicator(group), result_converter(inp, device)
    tensor = input_tensor(f"all_reduce_{op}", inp, comm)
    return convert(result_everywhere(comm.all_reduce(tensor, op), tensor))
