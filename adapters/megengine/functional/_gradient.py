"""The gradients of operations in which some ranks have no output or no input.

Before a gradient is sent, MegEngine announces whether there is one, because the root (``reduce_sum``, ``gather``) or
the receiver (``remote_send``) may not have used its output. Then no rank has a gradient, which is different from zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from collshim.communicator import Communicator
from collshim.megengine._recording import records
from collshim.megengine.autodiff.grad_manager import go_on_to, join_backward
from collshim.work import Work


def result_everywhere(work: Work[Tensor], tensor: Tensor | None) -> Tensor:
    """Return the result of a collective in which every rank has a result; ``tensor`` is this rank's input."""
    result = work.wait()
    if tensor is None or not tensor.requires_grad:
        go_on_to(result)
    return result


def result_on_root(comm: Communicator, post: Callable[[Tensor], Work[Any]], tensor: Tensor) -> Tensor | None:
    """Return a collective's result on the root and None on other ranks; every rank must take part in its backward."""
    flag = _RootFlag(comm)
    work = post(_Masked.apply(tensor, flag) if tensor.requires_grad else tensor)  # type: ignore[no-untyped-call]
    result: Tensor | None = work.wait()
    anchor = work.token if result is None else result
    if anchor is None or not anchor.requires_grad:
        return result
    output: Tensor
    output, join = _Announced.apply(anchor, flag)  # type: ignore[no-untyped-call]
    join_backward(join)
    if not tensor.requires_grad:
        go_on_to(join)
    return None if result is None else output


def send(comm: Communicator, to: int, tensor: Tensor) -> None:
    """Send without waiting; if managers record on this rank, their backward pass receives the gradient."""
    is_recorded = tensor.requires_grad and torch.is_grad_enabled() and records()
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    comm.send(copy.requires_grad_(is_recorded), to=to, discovers=True).free()
    if is_recorded:
        join_backward(_Sent.apply(tensor, comm, to))  # type: ignore[no-untyped-call]


def receive(comm: Communicator, source: int) -> Tensor:
    """Return the tensor from ``source``; if ``source`` differentiates, the gradient is sent back."""
    return _received(comm.recv(source=source, discovers=True).wait(), comm, source)


def _received(result: Tensor, comm: Communicator, source: int) -> Tensor:
    """Return the same tensor, whose backward sends the gradient back if the sender differentiates."""
    if not result.requires_grad:
        return result
    output: Tensor
    anchor = torch.zeros((), requires_grad=True)
    output, join = _Received.apply(anchor, result.detach(), comm, source)  # type: ignore[no-untyped-call]
    join_backward(join)
    go_on_to(join)
    return output


class _RootFlag:
    """A flag that the root broadcasts: whether it has a gradient. False until then."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.value = False

    def broadcast(self, value: bool) -> None:
        self.value = bool(self._comm.broadcast(torch.tensor(value), root=0).wait())


class _Announced(torch.autograd.Function):
    """Wraps an output: its backward broadcasts whether a gradient arrived; ``join`` makes it run even if none did."""

    @staticmethod
    def forward(ctx: Any, output: Tensor, flag: _RootFlag) -> tuple[Tensor, Tensor]:
        ctx.flag = flag
        ctx.set_materialize_grads(False)
        ctx.output = torch.empty_like(output, device="meta"), output.device
        return output.view_as(output), torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, None]:
        gradient, _ = gradients
        ctx.flag.broadcast(gradient is not None)
        template, device = ctx.output
        return (torch.zeros_like(template, device=device) if gradient is None else gradient), None


class _Masked(torch.autograd.Function):
    """Passes a gradient on if the root has announced one."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, flag: _RootFlag) -> Tensor:
        ctx.flag = flag
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None]:
        return (gradients[0] if ctx.flag.value else None), None


class _Sent(torch.autograd.Function):
    """A send: the receiver announces whether it has a gradient, and sends it if so."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, comm: Communicator, to: int) -> Tensor:
        ctx.comm, ctx.to = comm, to
        ctx.template = torch.empty_like(tensor, device="meta", memory_format=torch.contiguous_format), tensor.device
        return torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, None, None]:
        has_gradient = ctx.comm.recv(source=ctx.to, like=torch.tensor(False), discovers=True).wait()
        if not has_gradient:
            return None, None, None
        template, device = ctx.template
        like = torch.empty_like(template, device=device)
        with torch.enable_grad():  # so that the result shows whether the receiver records it
            gradient: Tensor = ctx.comm.recv(source=ctx.to, like=like, discovers=True).wait()
        if gradient.requires_grad and not torch.is_grad_enabled():  # the receiver records gradients, this rank does not
            ctx.comm.send(torch.tensor(False), to=ctx.to, discovers=True).free()
            return gradient.detach(), None, None
        return _received(gradient, ctx.comm, ctx.to), None, None


class _Received(torch.autograd.Function):
    """A receive: it does not wait for its gradient's send, because the sender may be sending to this rank too."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, result: Tensor, comm: Communicator, source: int) -> tuple[Tensor, Tensor]:
        ctx.comm, ctx.source = comm, source
        ctx.set_materialize_grads(False)
        return result.view_as(result), torch.zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[None, None, None, None]:
        gradient = gradients[0]
        ctx.comm.send(torch.tensor(gradient is not None), to=ctx.source, discovers=True).free()
        if gradient is not None:
            send(ctx.comm, ctx.source, gradient)
        return None, None, None, None
