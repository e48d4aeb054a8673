"""Results in the forms of torch's ``nn.functional``: in the caller's outputs, placeholders, with zero gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_output, as_torch, like


class _Delivered(torch.autograd.Function):
    """A result in the caller's output, with the graph of the result."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, output: Tensor) -> Tensor:
        return output.detach().copy_(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class _BesideInputs(torch.autograd.Function):
    """A result that does not depend on this rank's inputs, whose gradients are then zero."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, *inputs: Tensor) -> Tensor:
        ctx.shapes = [(tuple(tensor.shape), tensor.dtype, tensor.device) for tensor in inputs]
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        zeros = [torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.shapes]
        return (gradients[0], *zeros)


def require_fit(what: str, output: Array, part: Tensor) -> Tensor:
    """Return the memory of ``output``; refuse it unless it has the shape and dtype of ``part``."""
    target = as_output(output, what=what)
    if (target.shape, target.dtype) != (part.shape, part.dtype):
        actual, expected = (f"{tuple(tensor.shape)} of {tensor.dtype}" for tensor in (target, part))
        refuse(RuntimeError, f"{what} is {actual}, should be {expected}")
    return target


def deliver(output: Array, result: Tensor) -> Array:
    """Copy the result into ``output`` and return ``output``, or a new tensor over it if the result has a graph."""
    if not isinstance(output, Tensor) or not result.requires_grad:
        as_output(output).detach().copy_(result.detach())
        return output
    return _Delivered.apply(result, output.detach())  # type: ignore[no-untyped-call]


def connect_inputs(result: Array, inputs: Sequence[Array]) -> Array:
    """Return ``result``, through which the gradients of ``inputs`` are zero, as in torch on ranks without a result."""
    differentiable_inputs = [tensor for tensor in inputs if isinstance(tensor, Tensor) and tensor.requires_grad]
    if not differentiable_inputs or not torch.is_grad_enabled() or not isinstance(result, Tensor):
        return result
    return _BesideInputs.apply(result, *differentiable_inputs)  # type: ignore[no-untyped-call]


def result_off_root(array: Array, token: Tensor | None, *, zeros: bool = False) -> Array:
    """Return a non-root rank's placeholder, a copy of its array or zeros; its backward takes part through ``token``."""
    tensor = as_torch(array).detach()
    result = torch.zeros_like(tensor) if zeros else tensor.clone()
    kind = like(array)
    result = result if token is None else result + token
    return result if kind is None else kind(result)
