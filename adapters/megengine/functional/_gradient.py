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
from collshim.megengine.autodiff.grad_manager import go_on_to, join_backward
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
    result = work.wait()
    carrier = work.token if result is None else result
    if carrier is None or not carrier.requires_grad:
        return result
    seen, join = _Asks.apply(carrier, told)  # type: ignore[no-untyped-call]
    join_backward(join)
    if not tensor.requires_grad:
        go_on_to(join)
    return None if result is None else seen


def sent(members: Communicator, to: int, tensor: Tensor) -> None:
    """Send without waiting; this rank's managers await the receiver's gradient."""
    copy = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    members.send(copy, to=to, discovers=True)
    if tensor.requires_grad:
        join_backward(_Sent.apply(tensor, members, to))  # type: ignore[no-untyped-call]


def received(members: Communicator, source: int) -> Tensor:
    """What ``source`` sent; its gradient goes back."""
    result: Tensor = members.recv(source=source, discovers=True).wait()
    if not result.requires_grad:
        return result
    seen, join = _Asks.apply(result, _ReceiverTells(members, source))  # type: ignore[no-untyped-call]
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


class _ReceiverTells:
    """The receiver tells the sender whether it has a gradient."""

    def __init__(self, members: Communicator, sender: int) -> None:
        self._members = members
        self._sender = sender

    def tell(self, there: bool) -> None:
        self._members.send(torch.tensor(there), to=self._sender, discovers=True).wait()


class _Asks(torch.autograd.Function):
    """On the way back, tells whether a gradient came this way; through ``join`` also where none did."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, telling: _RootTells | _ReceiverTells) -> tuple[Tensor, Tensor]:
        ctx.telling = telling
        ctx.set_materialize_grads(False)
        ctx.output = torch.empty_like(output, device="meta"), output.device
        return output.view_as(output), torch.zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: Tensor | None) -> tuple[Tensor, None]:
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
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None]:
        return (gradient if ctx.told.there else None), None


class _Sent(torch.autograd.Function):
    """A send in torch's graph: the receiver tells whether it has a gradient, and sends it or zeros."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, members: Communicator, to: int) -> Tensor:
        ctx.members, ctx.to = members, to
        ctx.template = torch.empty_like(tensor, device="meta"), tensor.device
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, None, None]:
        there = ctx.members.recv(source=ctx.to, like=torch.tensor(False), discovers=True).wait()
        template, device = ctx.template
        like = torch.empty_like(template, device=device, memory_format=torch.contiguous_format)
        gradient = ctx.members.recv(source=ctx.to, like=like, discovers=True).wait()
        return (gradient if there else None), None, None
