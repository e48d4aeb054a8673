"""Calls in which a rank passes several tensors; each tensor counts as the tensor of a separate rank, as in gloo.

Gloo accepts them in three methods of a group: ``allreduce``, ``broadcast`` and ``allgather``. All tensors of a call
have the same shape and dtype. Conventions of torch 2.13.0, except that AVG divides every tensor; torch divides only the
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays.arithmetic import reducer
from collshim.communicator import Communicator
from collshim.work import Work


def all_reduce(comm: Communicator, tensors: list[Tensor], op: Any) -> Work[Any]:
    """Reduce all tensors of all ranks into every tensor of every rank."""
    _require_alike("allreduce", tensors)
    own_op = "sum" if op == "avg" or not isinstance(op, str) else op  # the ranks' reduction applies the factor
    with torch.no_grad():
        own = reducer(tensors[0].dtype, own_op)(tensors, None)
    return comm.all_reduce(own, op, out=own).then(lambda total: _fill(tensors, [total] * len(tensors)))


def broadcast(comm: Communicator, tensors: list[Tensor], root: int, index: int) -> Work[Any]:
    """Copy the root's tensor with this index to every tensor of every rank."""
    _require_alike("broadcast", tensors)
    if not 0 <= index < len(tensors):
        refuse(RuntimeError, f"broadcast: the root tensor is {index}, should be from 0 to {len(tensors) - 1}")
    own = tensors[index].detach()
    return comm.broadcast(own, root).then(lambda result: _fill(tensors, [result] * len(tensors)))


def all_gather(comm: Communicator, outputs: Sequence[list[Tensor]], tensors: list[Tensor]) -> Work[Any]:
    """Gather the tensors of all ranks, rank by rank, into every list of outputs; there is one list for each input."""
    _require_alike("allgather", tensors)
    if len(outputs) != len(tensors):
        refuse(RuntimeError, f"allgather: {len(outputs)} lists of outputs, should be {len(tensors)}, one per input")
    expected = comm.size * len(tensors)
    for place, parts in enumerate(outputs):
        if len(parts) != expected:
            refuse(RuntimeError, f"allgather: output list {place} has {len(parts)} tensors, should have {expected}")
        _require_alike("allgather", [tensors[0], *parts])
    with torch.no_grad():
        own = torch.stack(tensors)

    def fill(stacked: Tensor) -> None:
        for parts in outputs:
            _fill(parts, stacked.flatten(0, 1))

    return comm.all_gather(own).then(fill)


def _require_alike(method: str, tensors: Sequence[Tensor]) -> None:
    expected = (tensors[0].dtype, tensors[0].shape)
    for place, tensor in enumerate(tensors):
        if (tensor.dtype, tensor.shape) != expected:
            actual, wanted = (f"{tuple(each.shape)} of {each.dtype}" for each in (tensor, tensors[0]))
            refuse(RuntimeError, f"{method}: tensor {place} is {actual}, should be {wanted}, like the first")


def _fill(tensors: Sequence[Tensor], results: Any) -> None:
    with torch.no_grad():
        for tensor, result in zip(tensors, results, strict=True):
            tensor.copy_(result)
