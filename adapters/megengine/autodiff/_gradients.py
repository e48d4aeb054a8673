"""The parts of a backward pass: its inputs, torch's gradients, and their accumulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.arrays import as_torch
from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.core.tensor.values import Value, Valued
from collshim.megengine.tensor import wrapped
from collshim.megengine.utils.future import Future


def paired(y: Any, dy: Any) -> tuple[list[Value], list[Value]]:
    """Return the values to differentiate, and the gradient of each; the gradients are ones if ``dy`` is None.

    Raises:
        RuntimeError: the numbers of ``y`` and ``dy`` differ.
    """
    ys = [_value(each, "backward: y") for each in _listed(y)]
    dys = (
        [torch.ones_like(each) for each in ys] if dy is None else [_value(each, "backward: dy") for each in _listed(dy)]
    )
    if len(ys) != len(dys):
        raise also(ArgumentValueError, RuntimeError)(f"backward: {len(dys)} dy are passed, should be {len(ys)}, as y")
    return ys, dys


def _value(array: Any, what: str) -> Value:
    return array._value if isinstance(array, Valued) else as_torch(array, what=what)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def differentiate(
    pairs: Sequence[tuple[Value, Value]], inputs: list[Value], foreign: list[Value], keeps: bool, records: bool
) -> list[Value | None]:
    """Return the gradients for ``inputs``, as separate tensors; None for an input without a gradient.

    Args:
        pairs: the values to differentiate, each with its gradient.
        inputs: the values with respect to which they are differentiated.
        foreign: further values that the backward pass must reach, because other ranks wait for it.
        keeps: whether another manager will use the graph again.
        records: whether the gradients can be differentiated again.
    """
    reached = [*inputs, *foreign]
    if not pairs or not reached:
        return [None] * len(inputs)
    grads = torch.autograd.grad(
        [y for y, _ in pairs],
        reached,
        [dy for _, dy in pairs],
        retain_graph=keeps,
        create_graph=records,
        allow_unused=True,
    )
    return _of_their_own(list(grads[: len(inputs)]), [dy for _, dy in pairs])


def _of_their_own(grads: list[Value | None], dys: list[Value]) -> list[Value | None]:
    """Make gradients writable in place: torch may return one tensor for several inputs, or expanded tensors."""
    addresses = {dy.data_ptr() for dy in dys}
    own: list[Value | None] = []
    for grad in grads:
        if grad is not None and (grad.data_ptr() in addresses or not grad.is_contiguous()):
            grad = grad.clone(memory_format=torch.contiguous_format)
        if grad is not None:
            addresses.add(grad.data_ptr())
        own.append(grad)
    return own


def accumulate(tensor: Any, grad: Any, records: bool) -> None:
    """Add ``grad`` to ``tensor.grad``; None adds nothing. A gradient of one element becomes 0-d if the tensor is 0-d.

    Args:
        tensor: the tensor that the gradient belongs to.
        grad: a tensor, or a future of one.
        records: whether the sum can be differentiated again.
    """
    found = grad.get() if isinstance(grad, Future) else grad
    if found is None:
        return
    if not isinstance(found, torch.Tensor | Valued):
        raise ArgumentTypeError(f"backward: a callback returned {type(found).__qualname__}, should be a tensor")
    value = found._value if isinstance(found, Valued) else found
    gradient = (value if records else value.detach()).reshape(tensor.shape)
    if isinstance(tensor, Valued):
        earlier = tensor.grad  # type: ignore[attr-defined]
        if earlier is None:
            tensor.grad = wrapped(gradient, tensor._device)  # type: ignore[attr-defined]
        else:
            earlier._reset(wrapped(earlier._value + gradient, tensor._device))  # all references share the sum
        return
    if not tensor.is_leaf:
        tensor.retain_grad()  # otherwise torch warns about the grad of a computed tensor
    tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


def leaves_of(output: Value) -> list[Value]:
    """Return the leaves that ``output`` was computed from."""
    leaves: list[Value] = []
    nodes: list[Any] = [output.grad_fn]
    for node in nodes:
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        elif node is not None:
            nodes.extend(parent for parent, _ in node.next_functions)
    return leaves
