"""Each collective in torch's forms, over a communicator; functions, a group's methods and batches post them.

Every function takes the communicator first, writes results into the arrays that are passed, outside torch's graph (see
``cuts``), and returns the engine's work.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import as_output, as_torch
from collshim.communicator import Communicator
from collshim.layout import split
from collshim.torch.distributed.cuts import cut
from collshim.torch.distributed.forms import beneath, joined_like, lengths, outputs, place, uncounted, values
from collshim.work import Work


def all_reduce(comm: Communicator, tensor: Any, op: Any) -> Work[Any]:
    """Reduce all ranks' tensors into every rank's tensor."""
    own = uncounted(tensor)
    work = comm.all_reduce(own, op, out=own)
    cut("allreduce_", [tensor])
    return work


def all_reduce_coalesced(comm: Communicator, tensors: list[Any], op: Any) -> Work[Any]:
    """Reduce several tensors over all ranks in one call; every rank's tensors receive the results."""
    return comm.all_reduce_coalesced(values(tensors), op, out=outputs(tensors))


def reduce(comm: Communicator, tensor: Any, root: int, op: Any) -> Work[Any]:
    """Reduce all ranks' tensors into the root's tensor; the other ranks' tensors do not change."""
    own = uncounted(tensor)
    return comm.reduce(own, root, op, out=own if root == comm.rank else None)


def broadcast(comm: Communicator, tensor: Any, root: int) -> Work[Any]:
    """Copy the root's tensor to every rank's tensor."""
    own = uncounted(tensor)
    work = comm.broadcast(own, root, out=own)
    cut("broadcast_", [tensor])
    return work


def all_gather(comm: Communicator, parts: list[Any], tensor: Any) -> Work[Any]:
    """Gather all ranks' tensors into every rank's list."""
    return comm.all_gather(values(tensor), out=outputs(parts))


def all_gather_single(comm: Communicator, output: Any, tensor: Any) -> Work[Any]:
    """Gather all ranks' tensors into every rank's output, end to end or stacked."""
    own, what = values(tensor), "all_gather_single: output_tensor"
    work = comm.all_gather(own, out=joined_like(what, place(output, what).detach(), own, comm))
    cut("_allgather_base_", [output], [tensor])
    return work


def gather(comm: Communicator, tensor: Any, parts: list[Any], root: int) -> Work[Any]:
    """Gather all ranks' tensors into the root's list; the other ranks pass empty lists."""
    return comm.gather(values(tensor), root, out=outputs(parts) if parts else None)


def gather_single(comm: Communicator, tensor: Any, whole: Any, root: int) -> Work[Any]:
    """Gather all ranks' tensors, end to end, into the root's ``whole``, which is None on the other ranks."""
    own = values(tensor)
    if whole is None:
        return comm.gather(own, root)
    what, shape = "gather_single: gather_tensor", (comm.size, *as_torch(own).shape)
    target = as_output(whole, what=what)
    if not target.is_contiguous():
        refuse(RuntimeError, f"{what} is not contiguous, should be")
    if target.numel() != math.prod(shape):
        refuse(RuntimeError, f"{what} has {target.numel()} elements, should have {math.prod(shape)}")
    return comm.gather(own, root, out=outputs(target).detach().view(shape))


def scatter(comm: Communicator, output: Any, parts: list[Any], root: int) -> Work[Any]:
    """Send the root's r-th part to rank r's output; the other ranks pass empty lists."""
    work = comm.scatter(values(parts) if parts else None, root, out=uncounted(output))
    cut("scatter_", [output])
    return work


def reduce_scatter(comm: Communicator, output: Any, parts: list[Any], op: Any) -> Work[Any]:
    """Reduce all ranks' r-th parts into rank r's output."""
    work = comm.reduce_scatter(values(parts), op, out=beneath(output))
    cut("reduce_scatter_", [output])
    return work


def reduce_scatter_single(comm: Communicator, output: Any, tensor: Any, op: Any) -> Work[Any]:
    """Reduce the r-th part of all ranks' tensors, end to end or stacked, into rank r's output."""
    parts = joined_like("reduce_scatter_single: input", values(tensor), values(output), comm)
    work = comm.reduce_scatter(parts, op, out=beneath(output))
    cut("_reduce_scatter_base_", [output], [tensor])
    return work


def all_to_all(comm: Communicator, places: list[Any], parts: list[Any]) -> Work[Any]:
    """Send each rank's r-th part to rank r; parts arrive in rank order."""
    work = comm.all_to_all(values(parts), out=beneath(places))
    cut("alltoall_", places, parts)
    return work


def all_to_all_single(
    comm: Communicator, output: Any, tensor: Any, output_sizes: list[int], input_sizes: list[int]
) -> Work[Any]:
    """Send each rank's r-th piece to rank r, whose output holds them in rank order; without sizes, pieces are equal."""
    source, out = values(as_torch(tensor)), uncounted(as_output(output, what="all_to_all_single: output"))
    sends = lengths("all_to_all_single: input", source, input_sizes, comm)
    expects = lengths("all_to_all_single: output", out, output_sizes, comm)
    if sends is None and expects is None:
        if comm.checks and source.shape[0] == comm.size:  # pieces of length 1 look like parts without dimension 0
            source, out = split(source, comm.size), split(out, comm.size)
        return comm.all_to_all(source, out=out)
    sends, expects = sends or _equal(source, comm), expects or _equal(out, comm)
    return comm.all_to_all(source, out=out, splits=(sends, expects))


def _equal(whole: Tensor, comm: Communicator) -> tuple[int, ...]:
    return (whole.shape[0] // comm.size,) * comm.size


def barrier(comm: Communicator) -> Work[None]:
    """Post a barrier; the work is complete when every rank has posted it."""
    return comm.barrier()


def send(comm: Communicator, tensor: Any, destination: int, tag: int) -> Work[Any]:
    """Send the tensor to the destination."""
    return comm.send(values(tensor), destination, tag)


def recv(comm: Communicator, tensor: Any, source: int | None, tag: int) -> Work[Any]:
    """Receive the message of the source, or of any rank, in the tensor."""
    return comm.recv(source, out=uncounted(tensor), tag=tag)
