"""``mindspore.value_and_grad`` and ``mindspore.grad`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.tensor import wrap

__all__ = ["as_weights", "differentiate", "get_grad", "grad", "value_and_grad"]

_LEVELS = threading.local()
"""How many differentiated functions this thread runs: within another one, gradients are themselves differentiated."""


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: int | tuple[int, ...] | None = 0,
    weights: Sequence[Parameter] | Parameter | None = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that returns ``fn``'s result and the gradients of the sum of its outputs, or of the first one.

    If one tensor is passed as several arguments, the gradient of each is that with respect to the tensor. If ``fn``
    calls collectives, every rank must call the returned function, because the backward pass is collective too.

    Args:
        fn: a function or a Cell. All tensors in its result are outputs, also those in nested tuples, lists and dicts.
        grad_position: the positions of the arguments to differentiate with respect to, with those passed by name last;
            None for no argument. An argument that is not a tensor has no gradient.
        weights: the parameters to differentiate with respect to, in a list or tuple, or one parameter.
        has_aux: whether only the first output is differentiated.
        return_ids: whether each gradient is a pair with the position of its argument or the name of its parameter;
            see ``get_grad``.
        sens_param: whether the last positional argument of a call is the output's gradient, or a tuple of the outputs'
            gradients.

    Returns:
        ``(value, gradients)``. ``gradients``: for ``grad_position``, one gradient for one position, else a tuple; for
        ``weights``, one gradient for a single Parameter, else a tuple; a pair if both are given. A gradient is zero if
        no output depends on its input, or if its input is a parameter that requires no gradient, or has integers.

    Raises:
        RuntimeError: in a call, a position is beyond the arguments; or with ``has_aux``, an output is not a tensor.
        TypeError: an argument has the wrong type; or in a call, there are only integers to differentiate by.
        ValueError: both ``grad_position`` and ``weights`` are None, or a position is negative or occurs twice; or in a
            call with ``has_aux``, there is only one output.
    """
    for name, flag in (("return_ids", return_ids), ("has_aux", has_aux)):
        if not isinstance(flag, bool):
            refuse(TypeError, f"grad: {name} should be a bool, but got {flag!r}")
    if grad_position is None and weights is None:
        refuse(ValueError, "`grad_position` and `weight` can not be None at the same time.")
    positions, parameters = _positions(grad_position), as_weights(weights)

    def differentiated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        result, found = differentiate(fn, args, kwargs, positions, parameters, has_aux=has_aux, sens_param=sens_param)
        pairs = [pair if return_ids else pair[1] for pair in found]
        count = len(pairs) - len(parameters)
        of_inputs, of_weights = tuple(pairs[:count]), tuple(pairs[count:])
        alone = of_inputs[0] if count == 1 else None if grad_position is None else of_inputs
        return result, _pair(alone, _form(of_weights, weights))

    return differentiated


def differentiate(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: tuple[int, ...] | None,
    parameters: tuple[Any, ...],
    *,
    has_aux: bool = False,
    sens_param: bool = False,
) -> tuple[Any, list[tuple[Any, Any]]]:
    """Call ``fn`` for ``value_and_grad``; positions None are all.

    Returns:
        The result, and a pair of the position or name and the gradient of each tensor, first those of the arguments.
    """
    values = [*(args[:-1] if sens_param else args), *kwargs.values()]
    count = len(values) - len(kwargs)
    chosen = _tensors(values, tuple(range(len(values))) if positions is None else positions)
    inputs = _starts(values, chosen)
    if inputs and not parameters and not any(each.requires_grad for each in inputs):
        text = "is not supported: should be floats or complex numbers"
        refuse(TypeError, f"grad: a gradient by {', '.join(dtype_name(each.dtype) for each in inputs)} {text}")
    with _level(), torch.enable_grad():
        result = fn(*values[:count], **dict(zip(kwargs, values[count:], strict=True)))
    outputs = _outputs(result, has_aux)
    found = _gradients(outputs, [*inputs, *parameters], _received(args[-1], outputs) if sens_param else None)
    names = (*chosen, *(getattr(each, "name", None) for each in parameters))
    return _end(result), list(zip(names, found, strict=True))


def grad(
    fn: Callable[..., Any],
    grad_position: int | tuple[int, ...] | None = 0,
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
        TypeError: ``identifier`` is neither an int nor a Parameter.
    """
    if not isinstance(identifier, int | Parameter):
        refuse(TypeError, f"get_grad: identifier is {identifier!r}, should be an int or a Parameter")
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


def _positions(grad_position: Any) -> tuple[int, ...]:
    if grad_position is None:
        return ()
    positions = (grad_position,) if isinstance(grad_position, int) else grad_position
    if not isinstance(positions, tuple) or not all(isinstance(each, int) for each in positions):
        refuse(TypeError, f"grad_position must be an int or a tuple of ints, but got {grad_position!r}")
    if not positions:
        refuse(RuntimeError, "grad_position is empty, should have at least one position")
    if min(positions) < 0 or len(set(positions)) < len(positions):
        refuse(ValueError, f"grad_position must be different positions from 0 on, but got {grad_position}")
    return positions


def as_weights(weights: Any) -> tuple[Any, ...]:
    """Return one parameter, or a list or tuple of them, as a tuple.

    Raises:
        TypeError: ``weights`` is anything else.
    """
    own = (weights,) if isinstance(weights, torch.Tensor) else () if weights is None else weights
    if not isinstance(own, list | tuple) or not all(isinstance(each, torch.Tensor) for each in own):
        refuse(TypeError, f"weights must be a Parameter, or a list or tuple of them, but got {weights!r}")
    return tuple(own)


def _tensors(values: list[Any], positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions of tensors among these."""
    if positions and max(positions) >= len(values) > 0:
        refuse(RuntimeError, f"grad_position has {max(positions)}, but there are only {len(values)} arguments")
    return tuple(each for each in positions if each < len(values) and isinstance(values[each], torch.Tensor))


def _starts(values: list[Any], positions: tuple[int, ...]) -> list[torch.Tensor]:
    """Replace the tensors in the arguments by tensors to differentiate by; return those at the positions."""
    starts = {id(values[position]): _input(values[position]) for position in positions}
    values[:] = [starts.get(id(value), value) for value in values]
    return [values[position] for position in positions]


def _input(value: torch.Tensor) -> torch.Tensor:
    """Return an argument as a tensor to differentiate by; within another such function, as part of its graph."""
    if isinstance(value, Parameter) and value.requires_grad:
        return value
    if _nested() and value.requires_grad:
        return value.view_as(value)
    return value.detach().requires_grad_(value.is_floating_point() or value.is_complex())


def _outputs(result: Any, has_aux: bool) -> list[torch.Tensor]:
    """Return all tensors in a result, or in its first part."""
    if not has_aux:
        return [each for each in _leaves(result) if isinstance(each, torch.Tensor)]
    if not isinstance(result, tuple) or len(result) < 2:
        refuse(
            ValueError,
            f"with has_aux, fn should return a tuple of at least two outputs, but got {type(result).__name__}",
        )
    for each in _leaves(result):
        if not isinstance(each, torch.Tensor):
            refuse(RuntimeError, f"with has_aux, all outputs should be tensors, but got {type(each).__name__}")
    return list(_leaves(result[0]))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _received(given: Any, outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the gradients of the outputs that a call passed."""
    received = list(given) if isinstance(given, list | tuple) else [given]
    if len(received) != len(outputs):
        text = f"there must be {len(outputs)} gradients of the outputs, but got {len(received)}"
        refuse(ValueError, f"sens_param: {text}")
    for place, (own, output) in enumerate(zip(received, outputs, strict=True)):
        number = isinstance(own, int | float)
        if number and output.dim() == 0:
            received[place] = torch.full_like(output, own)
        elif number or own.shape != output.shape:
            text = f"must have the shape {tuple(output.shape)}, but got {own if number else tuple(own.shape)}"
            refuse(RuntimeError if number else ValueError, f"sens_param: the gradient of output {place} {text}")
    return received


def _gradients(
    outputs: list[torch.Tensor], inputs: list[Any], received: list[torch.Tensor] | None
) -> list[torch.Tensor]:
    given = [torch.ones_like(output) for output in outputs] if received is None else received
    by = [each for each in inputs if each.requires_grad]
    pairs = [pair for pair in zip(outputs, given, strict=True) if pair[0].requires_grad]
    found: Any = [None] * len(by)
    if pairs and by:
        attached, ones = zip(*pairs, strict=True)
        more: Any = {"create_graph": True} if _nested() else {}
        found = torch.autograd.grad(attached, by, ones, allow_unused=True, **more)
    known = {id(each): gradient for each, gradient in zip(by, found, strict=True)}
    return [_end(_or_zeros(known.get(id(each)), each)) for each in inputs]


def _or_zeros(gradient: torch.Tensor | None, like: torch.Tensor) -> Any:
    """Return a gradient with values of its own: zeros if there is none, or if torch has only noted that it is zero."""
    if gradient is None or torch._is_zerotensor(gradient):
        return wrap(torch.zeros_like(like, requires_grad=False))
    return gradient


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
    if isinstance(result, dict):
        return {key: _end(value) for key, value in result.items()}
    return wrap(result if _nested() else result.detach()) if isinstance(result, torch.Tensor) else result
