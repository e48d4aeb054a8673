"""``mindspore.value_and_grad`` and ``mindspore.grad`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.tensor import wrap

__all__ = ["get_grad", "grad", "value_and_grad"]

_LEVELS = threading.local()
"""How many differentiated functions this thread runs: within another one, gradients are themselves differentiated."""


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Sequence[Parameter] | Parameter | None = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that returns ``fn``'s result and the gradients of the sum of its outputs, or of the first one.

    If one tensor is passed as several arguments, the gradient of each is that with respect to the tensor. If ``fn``
    calls collectives, every rank must call the returned function, because the backward pass is collective too.

    Args:
        fn: a function or a Cell.
        grad_position: the positions of the arguments to differentiate with respect to; None for no argument.
        weights: the parameters to differentiate with respect to.
        has_aux: whether only the first output is differentiated.
        return_ids: whether each gradient is a pair with the position of its argument or the name of its parameter;
            see ``get_grad``.
        sens_param: whether the last argument of a call is the output's gradient, or a tuple of the outputs' gradients.

    Returns:
        ``(value, gradients)``. ``gradients``: for ``grad_position``, one gradient for one position, else a tuple; for
        ``weights``, one gradient for a single Parameter, else a tuple; a pair if both are given. A gradient is zero if
        no output depends on its input.

    Raises:
        TypeError: ``return_ids`` is not a bool.
        ValueError: both ``grad_position`` and ``weights`` are None, or an argument to differentiate is not a tensor.
    """
    if not isinstance(return_ids, bool):
        refuse(TypeError, f"grad: return_ids should be a bool, but got {return_ids!r}")
    if grad_position is None and weights is None:
        refuse(ValueError, "`grad_position` and `weight` can not be None at the same time.")
    positions = () if grad_position is None else _as_tuple(grad_position)
    parameters = () if weights is None else _as_tuple(weights)

    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        values = list(args)
        received = _as_tuple(values.pop()) if sens_param else ()
        inputs = _starts(values, positions)
        with _level(), torch.enable_grad():
            result = fn(*values, **kwargs)
        found = _gradients(_outputs(result, has_aux), [*inputs, *parameters], received)
        if return_ids:
            found = tuple(zip((*positions, *(one.name for one in parameters)), found, strict=True))
        of_inputs, of_weights = found[: len(inputs)], found[len(inputs) :]
        alone = of_inputs[0] if len(positions) == 1 else None if grad_position is None else of_inputs
        return _end(result), _pair(alone, _form(of_weights, weights))

    return differentiated


def grad(
    fn: Callable[..., Any],
    grad_position: int | Sequence[int] | None = 0,
    weights: Sequence[Parameter] | Parameter | None = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Return a function that returns only the gradients of ``fn``; with ``has_aux``, also the other outputs."""
    both = value_and_grad(fn, grad_position, weights, has_aux, return_ids, sens_param)

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1:]) if has_aux else gradients

    return differentiated


def get_grad(gradients: Any, identifier: Any) -> Any:
    """Return the gradient of one argument or parameter, from the pairs that ``return_ids`` produces.

    Args:
        gradients: what the function from ``grad`` returned.
        identifier: the argument's position, or the Parameter.

    Raises:
        RuntimeError: ``gradients`` has no pair for it.
    """
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier
    for key, gradient in _with_ids(gradients):
        if type(key) is type(wanted) and key == wanted:
            return gradient
    refuse(RuntimeError, f"get_grad: there is no gradient for the position or parameter {identifier!r}")


def _with_ids(gradients: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs in a result of ``return_ids``."""
    if isinstance(gradients, tuple) and len(gradients) == 2 and isinstance(gradients[0], int | str):
        yield gradients
    elif isinstance(gradients, tuple):
        for each in gradients:
            yield from _with_ids(each)


@contextmanager
def _level() -> Iterator[None]:
    _LEVELS.count = _nested() + 1
    try:
        yield
    finally:
        _LEVELS.count -= 1


def _nested() -> int:
    return getattr(_LEVELS, "count", 0)


def _starts(values: list[Any], positions: tuple[int, ...]) -> list[torch.Tensor]:
    """Replace the tensors in the arguments by tensors to differentiate by; return those at the positions."""
    starts: dict[int, torch.Tensor] = {}
    for position in positions:
        if not 0 <= position < len(values) or not isinstance(values[position], torch.Tensor):
            refuse(ValueError, f"grad_position is {position}, and there is no such tensor of {len(values)} arguments")
        if id(values[position]) not in starts:
            starts[id(values[position])] = _input(values[position])
    values[:] = [starts.get(id(value), value) for value in values]
    return [values[position] for position in positions]


def _input(value: torch.Tensor) -> torch.Tensor:
    """Return an argument as a tensor to differentiate by; within another such function, as part of its graph."""
    if isinstance(value, Parameter) and value.requires_grad:
        return value
    if _nested() and value.requires_grad:
        return value.view_as(value)
    return value.detach().requires_grad_()


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, int | torch.Tensor) else tuple(value)


def _outputs(result: Any, has_aux: bool) -> list[torch.Tensor]:
    outputs = result if isinstance(result, list | tuple) else [result]
    return [output for output in (outputs[:1] if has_aux else outputs) if isinstance(output, torch.Tensor)]


def _gradients(outputs: list[torch.Tensor], inputs: list[Any], received: tuple[Any, ...]) -> tuple[Any, ...]:
    given = received or [torch.ones_like(output) for output in outputs]
    if len(given) != len(outputs):
        refuse(ValueError, f"sens_param: there must be {len(outputs)} gradients of the outputs, but got {len(given)}")
    pairs = [pair for pair in zip(outputs, given, strict=True) if pair[0].requires_grad]
    if not pairs:
        return tuple(wrap(torch.zeros_like(given)) for given in inputs)
    attached, ones = zip(*pairs, strict=True)
    more: Any = {"create_graph": True} if _nested() else {}
    found = torch.autograd.grad(attached, inputs, ones, allow_unused=True, materialize_grads=True, **more)
    return tuple(_end(gradient) for gradient in found)


def _form(gradients: tuple[Any, ...], weights: Any) -> Any:
    if weights is None:
        return None
    return gradients[0] if isinstance(weights, torch.Tensor) else gradients


def _pair(of_inputs: Any, of_weights: Any) -> Any:
    if of_inputs is None:
        return of_weights
    return of_inputs if of_weights is None else (of_inputs, of_weights)


def _end(result: Any) -> Any:
    """Return a result without its graph; within another differentiated function, with it."""
    if isinstance(result, list | tuple):
        return type(result)(map(_end, result))
    return wrap(result if _nested() else result.detach()) if isinstance(result, torch.Tensor) else result
