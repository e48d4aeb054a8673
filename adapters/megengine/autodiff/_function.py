"""``Function``: operations with a user-defined gradient (source: MegEngine 1.13.0, ``core.autodiff.grad``)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.megengine._recording import is_nested, records
from collshim.megengine.core.tensor.values import Valued, value_of
from collshim.megengine.tensor import Tensor, wrapped


class Function:
    """The base class: a derived class implements ``forward`` and ``backward``, and each instance is called once.

    ``forward`` takes tensors and returns one or several. ``backward`` takes the gradient of each output, and returns
    the gradient of each input, or None for an input without a gradient.

    If managers are nested, the outer ones also record the computations in ``forward``: they differentiate the tensors
    that ``forward`` kept and ``backward`` uses. In all managers, the outputs' gradient is computed by ``backward``.
    """

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the function; subclasses implement it."""
        raise NotImplementedError

    def backward(self, *output_grads: Any) -> Any:
        """Compute the gradients; subclasses implement it."""
        raise NotImplementedError

    def __call__(self, *args: Tensor) -> Any:
        for arg in args:
            if not isinstance(arg, Tensor):
                raise ArgumentTypeError(f"op Function expect type Tensor as inputs, got {type(arg)}")
        values = [arg._value for arg in args]
        if not records() or not any(value.requires_grad for value in values):
            return self.forward(*args)
        outputs = _Node.apply(self, [arg._device for arg in args], *values)  # type: ignore[no-untyped-call]
        results = wrapped(outputs, args[0]._device)
        return results[0] if self._is_single else results

    _is_single = False


class _Node(torch.autograd.Function):
    """One call in torch's autograd graph."""

    @staticmethod
    def forward(ctx: Any, function: Function, devices: list[str], *values: torch.Tensor) -> Any:
        ctx.function, ctx.device = function, devices[0]
        ctx.set_materialize_grads(False)
        with torch.set_grad_enabled(is_nested()):
            given = values if is_nested() else [value.detach() for value in values]
            outputs = function.forward(*map(wrapped, given, devices))
        function._is_single = not isinstance(outputs, list | tuple)
        found = [value_of(output).detach() for output in ((outputs,) if function._is_single else outputs)]
        return tuple(value.view_as(value) for value in found)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        given = [None if grad is None else wrapped(grad, ctx.device) for grad in grads]
        found = ctx.function.backward(*given)
        own = found if isinstance(found, list | tuple) else (found,)
        return (None, None, *(grad._value if isinstance(grad, Valued) else grad for grad in own))
