"""Gradients of collectives: the derivative of the sum of all ranks' losses.

With y_s the result on rank s, x_r the input of rank r and L the sum of all ranks' losses, each rule below computes
dL/dx_r from the dL/dy_s, which the ranks exchange. Every rank of the group takes part in a backward pass; a rank whose
own result is None takes part through its work's ``token``.

| collective | dL/dx_r |
| --- | --- |
| all_gather, gather | the r-th part of each dL/dy_s, summed over the ranks s that got a result |
| all_reduce sum, reduce sum | the sum of dL/dy_s over the ranks s that got a result |
| ... avg | the same, divided by the group's size |
| ... premul_sum | the same, times the factor |
| ... min, max | the same if x_r equals y, else 0 (every rank of a tie gets all of it) |
| ... prod | the same, times the product of the other ranks' x |
| reduce_scatter | as reduce, part by part |
| broadcast | on the root: the sum of all dL/dy_s; elsewhere nothing |
| scatter | on the root: each dL/dy_s at its position; elsewhere nothing |
| all_to_all | the parts of dL/dy, sent back to where they came from |
| send, recv | dL/dy of the receiver, sent back |

The rules are collectives themselves, so a backward pass may be differentiated again. This excludes broadcast, scatter,
send and recv: ranks whose inputs get no gradient could not take part in a second backward pass, so it is refused on
those whose inputs got one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from collshim.arrays import stripped
from collshim.calls import collective
from collshim.calls.call import Call
from collshim.calls.collective import Collective
from collshim.errors import ArgumentError, also
from collshim.layout import Parts, listed
from collshim.work import Work

Gradients = Sequence["Tensor | None"]
Rule = Callable[["NodeContext", list[Tensor], list[Tensor], list[Tensor]], Gradients]

Collectives: TypeAlias = Any
"""A ``Communicator``, of which this module only uses the methods: ``Communicator`` is built on this module."""


class _Node(torch.autograd.Function):
    """One collective in torch's graph; its results were computed before, and are passed in its context."""

    @staticmethod
    def forward(ctx: Any, joint: NodeContext, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.joint = joint
        results = tuple(joint.results)
        joint.results = []  # the graph holds the context, which must not hold the graph's outputs
        ctx.kept = kept = _KEPT.get(joint.call.reduce_op or "", ())
        ctx.save_for_backward(*(inputs if "inputs" in kept else ()), *(results if "results" in kept else ()))
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        joint: NodeContext = ctx.joint
        saved = list(ctx.saved_tensors) if ctx.kept else []  # torch refuses even an empty access in a second backward
        grads = [grad if type(grad) is Tensor else stripped(grad) for grad in gradients]
        own = joint.rule(joint, saved[: joint.inputs], saved[joint.inputs :], grads)
        return (None, *own, *[None] * (joint.inputs - len(own)))


_KEPT = {"min": ("inputs", "results"), "max": ("inputs", "results"), "prod": ("inputs",)}
"""The tensors that a reduce op's rule reads; other rules are linear, and work after their tensors were changed."""


class _Anchor(torch.autograd.Function):
    """An edge to an input that keeps none of its memory."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.new_empty(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise AssertionError("an anchor's gradient was requested before its successor's")  # _Last refuses first


class _Last(torch.autograd.Function):
    """A gradient that must not be differentiated with respect to anything: refused before anything is sent."""

    @staticmethod
    def forward(ctx: Any, text: str, gradient: Tensor, *anchors: Tensor) -> Tensor:
        ctx.text = text
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise also(ArgumentError, RuntimeError)(ctx.text)


class NodeContext:
    """What a node needs to know of its call."""

    def __init__(self, comm: Collectives, call: Call, inputs: list[Tensor], is_list: bool) -> None:
        self.comm = comm
        self.call = call
        self.is_list = is_list
        self.inputs = len(inputs)
        self.device = inputs[0].device
        self.results: list[Tensor] = []
        is_last = call.collective in (collective.BROADCAST, collective.SCATTER, collective.SEND)
        self.anchors = [_Anchor.apply(tensor) for tensor in inputs] if is_last else []  # type: ignore[no-untyped-call]
        self.rule = _RULES[call.collective]

    @property
    def root(self) -> int:
        """The call's root, or peer."""
        return 0 if self.call.root is None else self.call.root

    def blank(self) -> Tensor:
        """Return a tensor in the shape of this rank's input, for calls that get their values from other ranks."""
        return torch.empty(self.call.shape or (), dtype=self.call.dtype, device=self.device)


def attach(communicator: Collectives, work: Work[Any], parts: Parts | None, result: Any) -> Any:
    """Attach a node to a call's result and return it; ``parts`` is this rank's input. Some rank needs a gradient."""
    call: Call = work.call
    if call.collective is collective.RECV and call.root is None:
        call = call._replace(root=work.source)  # the gradient goes back to the sender
    inputs = [] if parts is None else [parts] if isinstance(parts, Tensor) else list(parts)
    is_list = parts is not None and not isinstance(parts, Tensor)
    if not any(tensor.requires_grad for tensor in inputs):
        inputs.append(torch.zeros((), requires_grad=True))  # this rank takes part without a gradient of its own
    joint = NodeContext(communicator, call, inputs, is_list)
    results = [torch.zeros(())] if result is None else [result] if isinstance(result, Tensor) else list(result)
    joint.results = [tensor.detach() for tensor in results]
    outputs: tuple[Tensor, ...] = _Node.apply(joint, *inputs)  # type: ignore[no-untyped-call]
    if result is None:
        work.token = outputs[0]
        return None
    return outputs[0] if isinstance(result, Tensor) else list(outputs)


def _all_gather(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    return [joint.comm.reduce_scatter(grads if joint.call.expects is not None else grads[0]).wait()]


def _gather(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    comm, root = joint.comm, joint.root
    if comm.rank != root:
        return [comm.scatter(None, root, like=joint.blank(), discovers=True).wait()]
    return [comm.scatter(grads if joint.call.expects is not None else grads[0], root, discovers=True).wait()]


def _all_reduce(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    total = joint.comm.all_reduce(grads[0]).wait()
    return [_differentiate_reduction(joint, inputs, lambda: results[0], total)]


def _reduce(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    comm, root = joint.comm, joint.root

    def from_root(tensors: list[Tensor]) -> Tensor:
        tensor: Tensor = comm.broadcast(tensors[0] if comm.rank == root else joint.blank(), root).wait()
        return tensor

    return [_differentiate_reduction(joint, inputs, partial(from_root, results), from_root(grads))]


def _differentiate_reduction(
    joint: NodeContext, inputs: list[Tensor], result: Callable[[], Tensor], total: Tensor
) -> Tensor:
    """Compute dL/dx from dL/dy of a reduction of every rank's input."""
    comm, call = joint.comm, joint.call
    if call.reduce_op in ("min", "max"):
        return total * (inputs[0] == result())
    if call.reduce_op == "prod":
        return total * _product_of_others(comm, comm.all_gather(inputs[0]).wait()).conj()
    return _scale(comm.size, call, total)


def _scale(size: int, call: Call, total: Tensor) -> Tensor:
    """Differentiate a sum, an average or a sum with a factor."""
    if call.reduce_op == "avg":
        return total / size
    return total * (1.0 if call.factor is None else call.factor) if call.reduce_op == "premul_sum" else total


def _product_of_others(comm: Collectives, everything: Tensor) -> Tensor:
    others = [part for rank, part in enumerate(everything.unbind(0)) if rank != comm.rank]
    product = torch.ones_like(everything[0])
    for part in others:
        product = product * part
    return product


def _reduce_scatter(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    comm, call = joint.comm, joint.call
    parts = inputs[: comm.size] if joint.is_list or not inputs else list(inputs[0].unbind(0))
    totals = _gather_all(joint, grads[0])
    if call.reduce_op in ("min", "max"):
        extremes = _gather_all(joint, results[0].detach())
        own = [total * (part == extreme) for total, part, extreme in zip(totals, parts, extremes, strict=True)]
    elif call.reduce_op == "prod":
        own = _send_products_back(comm, parts, grads[0])
    else:
        own = [_scale(comm.size, call, total) for total in totals]
    return own if joint.is_list else [torch.stack(own)]


def _gather_all(joint: NodeContext, tensor: Tensor) -> list[Tensor]:
    ragged, comm = joint.call.sends is not None, joint.comm
    return comm.all_gather_ragged(tensor).wait() if ragged else listed(comm.all_gather(tensor).wait())


def _send_products_back(comm: Collectives, parts: Sequence[Tensor], gradient: Tensor) -> list[Tensor]:
    """Multiply the gradient, on a part's owner, with the other ranks' parts, and send each rank its product."""
    everyones = comm.all_to_all(list(parts), discovers=True).wait()
    for_each = []
    for rank in range(comm.size):
        product = gradient
        for other, part in enumerate(everyones):
            product = product if other == rank else product * part.conj()
        for_each.append(product)
    return list(comm.all_to_all(for_each, discovers=True).wait())


def _broadcast(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    total = joint.comm.reduce(grads[0], joint.root).wait()
    return [] if total is None else [_last(joint, total)]


def _scatter(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    parts = joint.comm.gather_ragged(grads[0], joint.root).wait()
    if parts is None:
        return []
    parts = [_last(joint, part) for part in parts]
    return parts if joint.is_list else [torch.stack(parts)]


def _last(joint: NodeContext, gradient: Tensor) -> Tensor:
    """Wrap a gradient that other ranks helped to compute, since they could not take part in its own backward pass."""
    if not gradient.requires_grad:
        return gradient
    text = (
        f"{joint.call.name}: its backward is differentiated, should be done once: the other ranks cannot take part "
        f"in a second backward (rank {joint.comm.rank} of {joint.comm.size})"
    )
    last: Tensor = _Last.apply(text, gradient, *joint.anchors)  # type: ignore[no-untyped-call]
    return last


def _all_to_all(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    if joint.call.sends is not None:
        return list(joint.comm.all_to_all(grads, discovers=True).wait())
    return [joint.comm.all_to_all(grads[0]).wait()]


def _send(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    call = joint.call
    gradient = joint.comm.recv(joint.root, like=joint.blank(), tag=call.tag, discovers=call.discovers).wait()
    return [_last(joint, gradient)]


def _recv(joint: NodeContext, inputs: list[Tensor], results: list[Tensor], grads: list[Tensor]) -> Gradients:
    call = joint.call
    sent = joint.comm.send(grads[0].clone(), joint.root, tag=call.tag, discovers=call.discovers)
    sent.free()  # waiting could deadlock
    return []


_RULES: dict[Collective, Rule] = {
    collective.ALL_GATHER: _all_gather,
    collective.GATHER: _gather,
    collective.ALL_REDUCE: _all_reduce,
    collective.REDUCE: _reduce,
    collective.REDUCE_SCATTER: _reduce_scatter,
    collective.BROADCAST: _broadcast,
    collective.SCATTER: _scatter,
    collective.ALL_TO_ALL: _all_to_all,
    collective.SEND: _send,
    collective.RECV: _recv,
}
