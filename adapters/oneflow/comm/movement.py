"""Collectives that move values unchanged: all_gather, all_gather_into_tensor, gather, broadcast, scatter, all_to_all.

Conventions of OneFlow 0.9.0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from collshim.arrays import Array
from collshim.oneflow.comm.arguments import (
    argument_error,
    rebind,
    require_attribute,
    require_list,
    require_rank,
    require_target,
    require_tensor,
    storage,
    values,
    world_communicator,
)
from collshim.oneflow.comm.forms import require_rows
from collshim.oneflow.framework.tensor import adopt_like, plain


def all_gather(tensor_list: list[Array], tensor: Array) -> None:
    """Gather rank r's ``tensor``, as a new tensor, into every rank's ``tensor_list[r]``.

    The entries are replaced, not written: the old entries, which may be None, do not change. The new entries have the
    type of ``tensor`` and carry its gradient: the sum, over all ranks, of the gradient of the rank's loss with respect
    to this rank's entry.

    Args:
        tensor_list: a list with one entry per rank.
        tensor: a tensor with the same shape and dtype on every rank.

    Raises:
        AssertionError: ``tensor_list`` is not a list with one entry per rank, or ``tensor`` is not a tensor.
    """
    require_list("all_gather", "tensor_list", tensor_list)
    require_tensor("all_gather", "tensor", tensor)
    tensor_list[:] = _gather_entries(tensor)


def all_gather_into_tensor(output_tensor: Array, input_tensor: Array) -> None:
    """Gather all ranks' ``input_tensor`` into every rank's ``output_tensor``, end to end in rank order.

    Only the number of elements and the dtype are checked, so every shape with ``world size x input_tensor.numel()``
    elements is accepted: the concatenated form, the stacked form, and the documentation's (2, 3, 2) for two inputs of
    (2, 3), which is neither.

    Args:
        output_tensor: a tensor that is written in place, in row-major order.
        input_tensor: a tensor with the same shape and dtype on every rank.

    Raises:
        RuntimeError: "output tensor size must be equal to world_size times input tensor size",
            "output tensor must have the same type as input tensor".
        AttributeError: an argument is not a tensor.

    >>> # two ranks
    >>> tensor_in = flow.tensor([[1, 2, 3], [4, 5, 6]]) + flow.env.get_rank() * 6  # doctest: +SKIP
    >>> tensor_out = flow.zeros(4, 3, dtype=flow.int64)  # doctest: +SKIP
    >>> flow.comm.all_gather_into_tensor(tensor_out, tensor_in)  # doctest: +SKIP
    >>> tensor_out  # on both  # doctest: +SKIP
    tensor([[ 1,  2,  3],
            [ 4,  5,  6],
            [ 7,  8,  9],
            [10, 11, 12]])
    """
    comm = world_communicator()
    target, part = require_rows("all_gather_into_tensor", output_tensor, input_tensor, comm.size, shares=False)
    if target.is_contiguous():
        comm.all_gather(part, out=target.view(comm.size, *part.shape)).wait()
    else:
        target.copy_(comm.all_gather(part).wait().view(target.shape))


def gather(tensor: Array, gather_list: list[Array] | None = None, dst: int = 0) -> None:
    """Gather rank r's ``tensor``, as a new tensor, into ``gather_list[r]`` of every rank that passes a list.

    ``dst`` is ignored, as in OneFlow: every list that is passed is filled, and its entries are replaced, not written.
    So every rank receives every tensor. In a world of several dialects, this matches an all_gather of the others.

    Args:
        tensor: a tensor with the same shape and dtype on every rank.
        gather_list: a list with one entry per rank, or None.
        dst: ignored.

    Raises:
        AssertionError: ``tensor`` is not a tensor, or ``gather_list`` is not a list with one entry per rank.
    """
    require_tensor("gather", "tensor", tensor)
    if gather_list is not None:
        require_list("gather", "gather_list", gather_list)
    entries = _gather_entries(tensor)
    if gather_list is not None:
        gather_list[:] = entries


def broadcast(tensor: Array, src: int) -> None:
    """Copy rank ``src``'s values into the memory of every rank's ``tensor``.

    Args:
        tensor: a tensor with the same shape and dtype on every rank; it may be a leaf that requires a gradient.
        src: the rank whose values every rank holds afterwards.

    Raises:
        AssertionError: ``tensor`` is not a tensor, or ``src`` not an int.
        IndexError: ``src`` is not a rank (OneFlow aborts).
    """
    target = storage("broadcast", "tensor", tensor)
    require_rank("broadcast", "src", src)
    world_communicator().broadcast(target, int(src), out=target).wait()


def scatter(tensor: Array, scatter_list: list[Array] | None = None, src: int = 0) -> None:
    """Send rank ``src``'s ``scatter_list[r]`` to rank r's ``tensor``.

    On ``src`` itself, ``tensor`` is rebound to ``scatter_list[src]``: it has the shape of that entry and shares its
    memory from then on. (A NumPy array is written instead.) On the other ranks, ``tensor``'s own memory is written.

    Args:
        tensor: a tensor with the shape and dtype of this rank's part.
        scatter_list: on ``src``, a list with one tensor per rank, all of which except ``src``'s own have the shape of
            ``tensor``; ignored on the other ranks.
        src: the source rank.

    Raises:
        AssertionError: ``tensor`` is not a tensor, or ``src`` not an int; on ``src``, ``scatter_list`` is not a list
            with one tensor per rank; or "invalid tensor size at index i".
        RuntimeError: an entry's dtype is not that of ``tensor`` (OneFlow aborts).
        TypeError: a tensor is sparse, or has no memory.
        IndexError: ``src`` is not a rank (OneFlow hangs).
    """
    target = storage("scatter", "tensor", tensor)
    require_rank("scatter", "src", src)
    comm = world_communicator()
    src = int(src)  # OneFlow accepts True as 1
    if comm.rank != src:
        comm.scatter(None, src, out=target).wait()
        return
    parts = [values("scatter", "scatter_list", part) for part in require_list("scatter", "scatter_list", scatter_list)]
    require_target("scatter", "scatter_list", parts[src])  # not sent, but bound to ``tensor``
    _require_parts(parts, target, src)
    comm.scatter([*parts[:src], target, *parts[src + 1 :]], src).wait()
    rebind(tensor, parts[src])


def all_to_all(output_tensor_list: list[Array], input_tensor_list: list[Array]) -> None:
    """Send rank s's ``input_tensor_list[r]`` to rank r's ``output_tensor_list[s]``.

    The tensors of ``output_tensor_list`` stay the same objects. The rank's own entry, ``output_tensor_list[rank]``, is
    rebound to ``input_tensor_list[rank]`` and shares its memory from then on (a NumPy array is written instead). The
    memory of the other entries is written. All input is read before any output is written.

    Args:
        output_tensor_list: one tensor per rank.
        input_tensor_list: one tensor per rank; all tensors of both lists have the same shape and dtype.

    Raises:
        AssertionError: an argument is not a list with one entry per rank; an entry is not a tensor, or has a different
            shape or dtype.
        AttributeError: the first entry of a list is not a tensor.
        TypeError: a tensor is sparse, or has no memory.
    """
    comm = world_communicator()
    sources = require_list("all_to_all", "input_tensor_list", input_tensor_list)
    outputs = require_list("all_to_all", "output_tensor_list", output_tensor_list)
    require_attribute("all_to_all", "input_tensor_list[0]", sources[0], "shape")
    require_attribute("all_to_all", "output_tensor_list[0]", outputs[0], "shape")
    parts = [values("all_to_all", "input_tensor_list", part) for part in sources]
    targets = [storage("all_to_all", "output_tensor_list", out) for out in outputs]
    _require_alike([*parts, *targets])
    own, source = outputs[comm.rank], sources[comm.rank]
    require_target("all_to_all", "output_tensor_list", own)
    part = parts[comm.rank]
    targets[comm.rank] = torch.empty(part.shape, dtype=part.dtype, device=part.device)
    comm.all_to_all(parts, out=targets).wait()
    rebind(own, source)


def _gather_entries(tensor: Array) -> list[Array]:
    """Return every rank's tensor, each with the type of this rank's tensor."""
    entries = world_communicator().all_gather(plain(tensor)).then(_entries).wait()
    return [adopt_like(entry, tensor) for entry in entries]


def _entries(stacked: Tensor) -> list[Tensor]:
    """Return one tensor per rank, by index: autograd forbids writing into the results of ``unbind``."""
    return [stacked[rank] for rank in range(len(stacked))]


def _require_alike(tensors: list[Tensor]) -> None:
    kinds = [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]
    if len(set(kinds)) > 1:
        what = "shape and dtype of the lists' entries"
        raise argument_error(AssertionError, "all_to_all", what, kinds, "equal in both lists")


def _require_parts(parts: list[Tensor], target: Tensor, src: int) -> None:
    """Refuse parts that do not fit their receivers; the source's own part, which is not sent, may have any shape."""
    for index, part in enumerate(parts):
        if index != src and part.shape != target.shape:
            own, actual = (f"oneflow.Size({list(tensor.shape)})" for tensor in (target, part))
            expected = f"that of tensor: invalid tensor size at index {index}: {own} vs {actual}"
            raise argument_error(AssertionError, "scatter", f"shape of scatter_list[{index}]", actual, expected)
        if part.dtype != target.dtype:
            raise argument_error(RuntimeError, "scatter", f"dtype of scatter_list[{index}]", part.dtype, target.dtype)
