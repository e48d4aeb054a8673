"""Collectives that return results, with MindSpore 2.10.0's gradients (its ``grad_comm_ops``).

Groups are names, roots are ranks in the group. A result is a MindSpore tensor in the memory that collshim filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from collshim.communicator import Communicator
from collshim.errors import ArgumentError, also
from collshim.patching.mindspore.gradients import Differentiation, Operation, Posted, Started
from collshim.patching.mindspore.named_groups import NamedGroups
from collshim.patching.mindspore.tensors import Tensors
from collshim.patching.replacing import Foreign
from collshim.work import CompletedWork

Gradients = Sequence[Any]


class Functional:
    """The collectives; every rank of the group calls each, and results are complete after the wait of its work."""

    def __init__(self, tensors: Tensors, groups: NamedGroups) -> None:
        self.tensors, self.groups = tensors, groups
        self._differentiation = Differentiation(tensors)

    def post(self, name: str, comm: Communicator, operation: Operation, *inputs: Foreign) -> Posted:
        """Post an operation, after checking that its inputs are tensors."""
        for value in inputs:
            self.tensors.require(name, value, comm.rank, comm.size)
        return self._differentiation.post(operation, *inputs)

    def all_reduce(self, x: Foreign, op: str, group: str) -> Posted:
        """Reduce all ranks' tensors."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            if op == "prod":
                return (
                    self.all_reduce(gradients[0] * operation.outputs[0], "sum", group).wait() / operation.inputs[0],
                )
            total = self.all_reduce(gradients[0], "sum", group).wait()
            if op in ("min", "max"):
                total = total * (operation.inputs[0] == operation.outputs[0]).astype(total.dtype)
            return (total / comm.size if op == "avg" else total,)

        return self.post("all_reduce", comm, Operation(partial(_all_reduce, comm, op), rule), x)

    def all_gather(self, x: Foreign, group: str) -> Posted:
        """Concatenate all ranks' tensors: ``(N * x1, ...)``, or ``(N,)`` if they have no axes."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            own = self.reduce_scatter(gradients[0], "sum", group).wait()
            return (own.reshape(operation.inputs[0].shape),)

        return self.post("all_gather", comm, Operation(partial(_all_gather, comm), rule), x)

    def reduce_scatter(self, x: Foreign, op: str, group: str) -> Posted:
        """Reduce all ranks' tensors, and return this rank's part, ``(x1 / N, ...)``."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            _require_sum(op)
            return (self.all_gather(gradients[0], group).wait(),)

        return self.post("reduce_scatter", comm, Operation(partial(_reduce_scatter, comm, op), rule), x)

    def broadcast(self, xs: Sequence[Foreign], root: int, group: str) -> Posted:
        """Return the root's tensors on every rank. The gradient is that of the rank's own result, unchanged."""
        comm = self.groups.communicator(group)
        _require_rank(comm, "broadcast", root)
        operation = Operation(partial(_broadcast, comm, root), lambda operation, gradients: gradients)
        return self.post("broadcast", comm, operation, *xs)

    def reduce(self, x: Foreign, root: int, op: str, group: str) -> Posted:
        """Return the reduction on the root, and one meaningless element on the other ranks."""
        comm = self.groups.communicator(group)
        _require_rank(comm, "reduce", root)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            return (self._from_root(gradients[0], operation.inputs[0].shape, root, group),)

        return self.post("reduce", comm, Operation(partial(_reduce, comm, root, op), rule), x)

    def gather(self, x: Foreign, root: int, group: str) -> Posted:
        """Return all ranks' tensors, ``(N * x1, ...)``, on the root, and one meaningless element on the others."""
        comm = self.groups.communicator(group)
        _require_rank(comm, "gather", root)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            own = tuple(operation.inputs[0].shape)
            length = own[0] if own else 1
            whole = self._from_root(gradients[0], (comm.size * length, *own[1:]), root, group)
            return (whole[comm.rank * length : (comm.rank + 1) * length].reshape(own),)

        return self.post("gather", comm, Operation(partial(_gather, comm, root), rule), x)

    def scatter(self, x: Foreign, root: int, group: str) -> Posted:
        """Return this rank's part, ``(x1 / N, ...)``, of the root's tensor; other ranks' inputs only have its shape."""
        comm = self.groups.communicator(group)
        _require_rank(comm, "scatter", root)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            whole = self.gather(gradients[0], root, group).wait()
            return (whole if comm.rank == root else self.zeros_like(operation.inputs[0]),)

        return self.post("scatter", comm, Operation(partial(_scatter, comm, root), rule), x)

    def all_to_all(self, x: Foreign, axes: tuple[int, int], group: str) -> Posted:
        """Exchange parts: split along the first of ``axes``, and concatenate along the second."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            return (self.all_to_all(gradients[0], (axes[1], axes[0]), group).wait(),)

        return self.post("all_to_all", comm, Operation(partial(_all_to_all, comm, *axes), rule), x)

    def all_to_all_v(self, x: Foreign, sends: Sequence[int], recvs: Sequence[int], group: str) -> Posted:
        """Exchange elements, flattened; ``sends`` and ``recvs`` are their numbers by rank."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            back = self.all_to_all_v(gradients[0], recvs, sends, group).wait()
            return (back.reshape(operation.inputs[0].shape),)

        return self.post("all_to_all_v", comm, Operation(partial(_all_to_all_v, comm, sends, recvs), rule), x)

    def all_gather_v(self, x: Foreign, counts: Sequence[int], group: str) -> Posted:
        """Gather all ranks' elements, flattened; ``counts`` are their numbers by rank."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            own = self.reduce_scatter_v(gradients[0], counts, "sum", group).wait()
            return (own.reshape(operation.inputs[0].shape),)

        return self.post("all_gather_v", comm, Operation(partial(_all_gather_v, comm, counts), rule), x)

    def reduce_scatter_v(self, x: Foreign, counts: Sequence[int], op: str, group: str) -> Posted:
        """Reduce all ranks' tensors, and return this rank's elements, flattened; ``counts`` has all ranks' numbers."""
        comm = self.groups.communicator(group)

        def rule(operation: Operation, gradients: Gradients) -> Gradients:
            _require_sum(op)
            whole = self.all_gather_v(gradients[0], counts, group).wait()
            return (whole.reshape(operation.inputs[0].shape),)

        return self.post("reduce_scatter_v", comm, Operation(partial(_reduce_scatter_v, comm, counts, op), rule), x)

    def zeros_like(self, x: Foreign) -> Foreign:
        """Return zeros with the shape and dtype of a tensor."""
        return self.tensors.make(torch.zeros(tuple(x.shape), dtype=self.tensors.dtype(x.dtype)))

    def _from_root(self, gradient: Foreign, shape: Sequence[int], root: int, group: str) -> Foreign:
        comm = self.groups.communicator(group)
        own = gradient
        if comm.rank != root:
            own = self.tensors.make(torch.zeros(tuple(shape), dtype=self.tensors.dtype(gradient.dtype)))
        return self.broadcast([own], root, group).wait()


def _require_sum(op: str) -> None:
    if op != "sum":
        raise also(ArgumentError, RuntimeError)("The reducescatter bprop only support ReduceOp.SUM until now.")


def _require_rank(comm: Communicator, function: str, rank: int) -> None:
    if not 0 <= rank < comm.size:
        text = f"{function}: the rank is {rank}, should be in [0, {comm.size}) of its group"
        raise also(ArgumentError, ValueError)(f"{text} (rank {comm.rank} of {comm.size})")


def _all_reduce(comm: Communicator, op: str, xs: list[Tensor]) -> Started:
    out = _empty(xs[0], xs[0].shape)
    return [out], comm.all_reduce(xs[0], op, out=out)


def _all_gather(comm: Communicator, xs: list[Tensor]) -> Started:
    shape = tuple(xs[0].shape)
    out = _empty(xs[0], (comm.size, *shape))
    work = comm.all_gather(xs[0], out=out)
    return [out.reshape(comm.size * shape[0], *shape[1:]) if shape else out], work


def _reduce_scatter(comm: Communicator, op: str, xs: list[Tensor]) -> Started:
    parts = divide(comm, xs[0])
    out = _empty(xs[0], parts.shape[1:])
    return [out], comm.reduce_scatter(parts, op, out=out)


def _broadcast(comm: Communicator, root: int, xs: list[Tensor]) -> Started:
    outs = [_empty(x, x.shape) for x in xs]
    works = [comm.broadcast(x, root, out=out) for x, out in zip(xs, outs, strict=True)]
    for work in works[:-1]:
        work.wait()
    return outs, works[-1]


def _reduce(comm: Communicator, root: int, op: str, xs: list[Tensor]) -> Started:
    out = _empty(xs[0], xs[0].shape) if comm.rank == root else None
    work = comm.reduce(xs[0], root, op, out=out)
    return [xs[0].new_zeros(1) if out is None else out], work


def _gather(comm: Communicator, root: int, xs: list[Tensor]) -> Started:
    shape = tuple(xs[0].shape)
    if comm.rank != root:
        return [xs[0].new_zeros(1)], comm.gather(xs[0], root)
    out = _empty(xs[0], (comm.size, *shape))
    work = comm.gather(xs[0], root, out=out)
    return [out.reshape(comm.size * shape[0], *shape[1:]) if shape else out], work


def _scatter(comm: Communicator, root: int, xs: list[Tensor]) -> Started:
    parts = divide(comm, xs[0])
    out = _empty(xs[0], parts.shape[1:])
    return [out], comm.scatter(parts if comm.rank == root else None, root, out=out)


def _all_to_all(comm: Communicator, axis: int, into: int, xs: list[Tensor]) -> Started:
    whole = xs[0]
    parts = divide(comm, whole.movedim(axis, 0).contiguous())
    received = comm.all_to_all(parts).wait()
    joined = torch.cat([part.movedim(0, axis) for part in received], into)
    return [joined], CompletedWork(joined)


def _all_to_all_v(comm: Communicator, sends: Sequence[int], recvs: Sequence[int], xs: list[Tensor]) -> Started:
    flat, out = _flat(xs[0], sends), _empty(xs[0], (sum(recvs),))
    parts, outs = list(flat.split(list(sends))), list(out.split(list(recvs)))
    return [out], comm.all_to_all(parts, out=outs)


def _all_gather_v(comm: Communicator, counts: Sequence[int], xs: list[Tensor]) -> Started:
    flat, out = _flat(xs[0], counts[comm.rank : comm.rank + 1]), _empty(xs[0], (sum(counts),))
    return [out], comm.all_gather(flat, out=list(out.split(list(counts))))


def _reduce_scatter_v(comm: Communicator, counts: Sequence[int], op: str, xs: list[Tensor]) -> Started:
    flat, out = _flat(xs[0], counts), _empty(xs[0], (counts[comm.rank],))
    return [out], comm.reduce_scatter(list(flat.split(list(counts))), op, out=out)


def divide(comm: Communicator, whole: Tensor) -> Tensor:
    """Split a tensor along its first axis into one part per rank; return the parts stacked by rank."""
    length = whole.shape[0] if whole.dim() else 1
    if whole.dim() == 0 or length % comm.size:
        text = "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: "
        _refuse(comm, f"{text}{length}, rank_size: {comm.size}")
    return whole.reshape(comm.size, length // comm.size, *whole.shape[1:])


def _flat(x: Tensor, counts: Sequence[int]) -> Tensor:
    if sum(counts) != x.numel():
        text = f"counts {list(counts)} must add up to the {x.numel()} elements of the input"
        raise also(ArgumentError, ValueError)(text)
    return x.reshape(-1)


def _refuse(comm: Communicator, text: str) -> NoReturn:
    raise also(ArgumentError, ValueError)(f"{text} (rank {comm.rank} of {comm.size})")


def _empty(like: Tensor, shape: Sequence[int]) -> Tensor:
    return torch.empty(tuple(shape), dtype=like.dtype, device=like.device)
