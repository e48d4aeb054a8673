"""Sums over all ranks: all_reduce, reduce, reduce_scatter, reduce_scatter_tensor.

Conventions of OneFlow 0.9.0.
"""

from __future__ import annotations

from torch import Tensor

from collshim.arrays import Array
from collshim.oneflow.comm.arguments import (
    argument_error,
    rebind,
    require_attribute,
    require_list,
    require_no_leaf,
    require_rank,
    require_target,
    storage,
    values,
    world_communicator,
)
from collshim.oneflow.comm.forms import require_rows


def all_reduce(tensor: Array) -> None:
    """Sum all ranks' ``tensor``; every rank's ``tensor`` then holds the sum, in its own memory.

    Args:
        tensor: a tensor with the same shape and dtype on every rank; the sum of bools is the logical or.

    Raises:
        AssertionError: ``tensor`` is not a tensor.
        RuntimeError: ``tensor`` is a leaf that requires a gradient.

    >>> tensor = flow.tensor([[1, 2], [3, 4]]) + flow.env.get_rank()  # two ranks  # doctest: +SKIP
    >>> flow.comm.all_reduce(tensor)  # doctest: +SKIP
    >>> tensor  # on both  # doctest: +SKIP
    tensor([[3, 5],
            [7, 9]])
    """
    target = storage("all_reduce", "tensor", tensor)
    require_no_leaf("all_reduce", tensor)
    world_communicator().all_reduce(target, out=target).wait()


def reduce(tensor: Array, dst: int) -> None:
    """Sum all ranks' ``tensor``; rank ``dst``'s ``tensor`` then holds the sum, in its own memory.

    The other ranks' tensors are unchanged.

    Args:
        tensor: a tensor with the same shape and dtype on every rank; the sum of bools is the logical or.
        dst: the destination rank.

    Raises:
        AssertionError: ``tensor`` is not a tensor, or ``dst`` not an int.
        RuntimeError: ``tensor`` is a leaf that requires a gradient, on any rank.
        IndexError: ``dst`` is not a rank (OneFlow raises no error, and no rank holds the result).
    """
    target = storage("reduce", "tensor", tensor)
    require_rank("reduce", "dst", dst)
    require_no_leaf("reduce", tensor)
    comm = world_communicator()
    comm.reduce(target, int(dst), out=target if comm.rank == dst else None).wait()


def reduce_scatter(output: Array, input_list: list[Array]) -> None:
    """Sum all ranks' ``input_list[r]`` into rank r's ``output``.

    ``output`` is rebound (``output.data = result``), so it has the input's dtype afterwards; if it was a view of a
    tensor, that tensor keeps its values. A NumPy array is written instead.

    Args:
        output: a tensor with the shape of one part.
        input_list: one tensor per rank, all with the same shape and dtype.

    Raises:
        AssertionError: ``output`` is not a tensor, or has a different shape; ``input_list`` is not a list with one
            entry per rank.
        AttributeError: an entry is not a tensor.
        TypeError: entries have different dtypes (OneFlow reduces each in its own dtype).
    """
    parts = _parts(input_list)
    require_target("reduce_scatter", "output", output)
    shapes = [tuple(part.shape) for part in parts]
    if any(shape != tuple(output.shape) for shape in shapes):
        expected = f"that of each entry of input_list, {shapes}"
        raise argument_error(AssertionError, "reduce_scatter", "shape of output", tuple(output.shape), expected)
    rebind(output, world_communicator().reduce_scatter(parts).wait())


def reduce_scatter_tensor(output_tensor: Array, input_tensor: Array) -> None:
    """Sum all ranks' ``input_tensor``, and split the sum into equal parts; rank r's ``output_tensor`` holds part r.

    Parts are counted in elements, in row-major order: only the number of elements and the dtype are checked, not the
    shapes.

    Args:
        output_tensor: a tensor with ``input_tensor.numel() / world size`` elements, which is written in place.
        input_tensor: a tensor with the same shape and dtype on every rank.

    Raises:
        RuntimeError: "output tensor size must be equal to world_size times input tensor size" (OneFlow has this text
            for both functions, although it is the wrong way round for this one), "output tensor must have the same type
            as input tensor".
        AttributeError: an argument is not a tensor.
    """
    comm = world_communicator()
    target, whole = require_rows("reduce_scatter_tensor", output_tensor, input_tensor, comm.size, shares=True)
    comm.reduce_scatter(whole.reshape(comm.size, *target.shape), out=target).wait()


def _parts(input_list: list[Array]) -> list[Tensor]:
    entries = require_list("reduce_scatter", "input_list", input_list)
    for place, entry in enumerate(entries):
        require_attribute("reduce_scatter", f"input_list[{place}]", entry, "is_local")
    return [values("reduce_scatter", "input_list", entry) for entry in entries]
