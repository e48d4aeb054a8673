"""How an operation's gradient finds its way on ranks that the operation gave no output, or that gave no input.

MegEngine tells, before a gradient travels, whether there is one: the root (``reduce_sum``, ``gather``) or the receiver
(``remote_send``) may not have used its output, and then no rank gets a gradient, which is not one of zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from collshim.communicator import Communicator
from collshim.megengine.autodiff.grad_manager import go_on_to, join_backward, records
from collshim.work import Work


def given_everywhere(work: Work[Tensor], tensor: Tensor | None) -> Tensor:
    """The result of a collective that every rank has one of; ``tensor`` is what this rank gave."""
    result = work.wait()
    if tensor is None or not tensor.requires_grad:
        go_on_to(result)
    return result


def given_on_root(members: Communicator, post: Callable[[Tensor], Work[Any]], tensor: Tensor) -> Tensor | None:
    """The result of a collective that only the root has one of, None elsewhere; every rank joins its backward."""
    told = _RootTells(members)
    work = post(_Masked.apply(tensor, told) if tensor.requires_grad else tensor)  # type: ignore[no-untyped-call]
    result: Tensor | None = work.wait()
    carrier = work.token if result is None else result
    if carrier is None or not carrier.requires_grad:
        return result
    seen: Tensor
    seen, join = _Asks.apply(carrier, told)  # type: ignore[no-untyped-call]
    join_backward(join)
    if not tensor.requires_grad:
        go_on_to(join)
    return None if result is None else seen


def sent(members: Communicator, to: int, tensor: Tensor) -> None:
    """Send without waiting; this rank's managers, where any records, await the receiver's gradient."""
    followed = tensor.requires_grad and torch.is_grad_enabled() and records()
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    members.send(copy.requires_grad_(followed), to=to, discovers=True)
    if followed:
        join_backward(_Sent.apply(tensor, members, to))  # type: ignore[no-untyped-call]


def received(members: Communicator, source: int) -> Tensor:
    """What ``source`` sent; where it follows its gradient, that goes back."""
    result: Tensor = members.recv(source=source, discovers=True).wait()
    if not result.requires_grad:
        return result
    seen: Tensor
    anchor = torch.zeros((), requires_grad=True)
    seen, join = _Received.apply(anchor, result.detach(), members, source)  # type: ignore[no-untyped-call]
    join_backward(join)
    go_on_to(join)
    return seen


class _RootTells:
    """The root tells the others whether it has a gradient; False until told."""

    def __init__(self, members: Communicator) -> None:
        self._members = members
        self.there = False

    def tell(self, there: bool) -> None:
        self.there = bool(self._members.broadcast(torch.tensor(there), root=0).wait())


class _Asks(torch.autograd.Function):
    """On the way back, tells whether a gradient came this way; through ``join`` also where none did."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, telling: _RootTells) -> tuple[Tensor, Tensor]:
        ctx.telling = telling
        ctx.set_materialize_grads(False)
        ctx.output = torch.empty_like(output, device="meta"), output.device
        return output.view_as(output), torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, None]:
        gradient, _ = gradients
        ctx.telling.tell(gradient is not None)
        template, device = ctx.output
        return (torch.zeros_like(template, device=device) if gradient is None else gradient), None


class _Masked(torch.autograd.Function):
    """Lets a gradient through where the root told that it has one."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, told: _RootTells) -> Tensor:
        ctx.told = told
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        return (gradients[0] if ctx.told.there else None), None


class _Sent(torch.autograd.Function):
    """A send: the receiver tells whether it has a gradient, and sends it where it has."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, members: Communicator, to: int) -> Tensor:
        ctx.members, ctx.to = members, to
        ctx.template = torch.empty_like(tensor, device="meta", memory_format=torch.contiguous_format), tensor.device
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, None, None]:
        told = ctx.members.recv(source=ctx.to, like=torch.tensor(False), discovers=True).wait()
        if not told:
            return None, None, None
        template, device = ctx.template
        like = torch.empty_like(template, device=device)
        return ctx.members.recv(source=ctx.to, like=like, discovers=True).wait(), None, None


class _Received(torch.autograd.Function):
    """A receive; what it sends back it does not wait for, as the sender may be sending to this rank as well."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, result: Tensor, members: Communicator, source: int) -> tuple[Tensor, Tensor]:
        ctx.members, ctx.source = members, source
        ctx.set_materialize_grads(False)
        return result.view_as(result), torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[None, None, None, None]:
        gradient = gradients[0]
        ctx.members.send(torch.tensor(gradient is not None), to=ctx.source, discovers=True)
        if gradient is not None:
            copy = gradient.detach().clone(memory_format=torch.contiguous_format)
            ctx.members.send(copy, to=ctx.source, discovers=True)
        return None, None, None, None
