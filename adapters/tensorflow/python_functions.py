"""``tf.py_function``, ``tf.numpy_function``, ``tf.custom_gradient`` and choices between functions.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from inspect import Parameter, signature
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.gradient_tape import GradientTape
from collshim.tensorflow.tensor import adopt, plain


def py_function(
    func: Callable[..., Any] | None = None, inp: Sequence[Any] | None = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Call a function with tensors; its result, or each entry of a list, becomes a tensor of dtype ``Tout``."""
    return _typed(_required(func)(*[convert_to_tensor(one) for one in inp or ()]), Tout)


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[Any] | None = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a function with NumPy arrays; its result, or each entry of a list, becomes a tensor of dtype ``Tout``."""
    return _typed(_required(func)(*[convert_to_tensor(one).numpy() for one in inp or ()]), Tout)


def _required(func: Callable[..., Any] | None) -> Callable[..., Any]:
    if func is None:
        raise ArgumentTypeError("func is None, should be a function")
    return func


def _typed(result: Any, kinds: Any) -> Any:
    if kinds is None:
        return []
    if isinstance(kinds, list | tuple):
        several = result if isinstance(result, list | tuple) else [result] * (len(kinds) == 1)
        return [_typed(one, kind) for one, kind in zip(several, kinds, strict=False)]
    return adopt(plain(convert_to_tensor(result)).to(torch_dtype(kinds)))


def custom_gradient(f: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Wrap a function that returns its result, and a function from the result's to the arguments' gradients.

    The result is a tensor or a list of tensors; the gradients are for the positional arguments. If the function reads
    trainable variables, the second function gets them as ``variables``, and returns their gradients in a second list.

    Raises:
        TypeError: the second function does not take ``variables``, although the first one reads some.
        ValueError: when the gradients are asked for, it returns too many or too few.
    """
    if f is None:
        return custom_gradient
    function = f

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [convert_to_tensor(one) for one in args]
        with GradientTape() as watcher, torch.no_grad():
            result, gradient = function(*tensors, **kwargs)
        reads = watcher.first_reads()
        if reads:
            _require_variables(gradient)
        found = result if isinstance(result, list | tuple) else [result]
        wanted = partial(_all_gradients, gradient, len(tensors), [variable for variable, _ in reads])
        outputs = _Custom.apply(wanted, found, *map(plain, tensors), *[value for _, value in reads])  # type: ignore[no-untyped-call]
        results = [adopt(one) for one in outputs]
        return type(result)(results) if isinstance(result, list | tuple) else results[0]

    return call


class _Custom(torch.autograd.Function):
    """A function with the results ``found`` and the gradients of the inputs that ``gradients`` returns."""

    @staticmethod
    def forward(ctx: Any, gradients: Any, found: Any, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.gradients = gradients
        return tuple(plain(convert_to_tensor(one)).detach() for one in found)

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[Any, ...]:
        several = ctx.gradients(*[adopt(one) for one in outer])
        return None, None, *[None if one is None else plain(convert_to_tensor(one)) for one in several]


def _require_variables(gradient: Callable[..., Any]) -> None:
    kinds = {name: parameter.kind for name, parameter in signature(gradient).parameters.items()}
    if "variables" not in kinds and Parameter.VAR_KEYWORD not in kinds.values():
        raise ArgumentTypeError(
            "custom_gradient: the function reads variables, so the function of its gradients must accept a 'variables' "
            "keyword argument"
        )


def _all_gradients(gradient: Callable[..., Any], count: int, variables: list[Any], *outer: Any) -> list[Any]:
    """Return the gradients of ``count`` arguments, then those of the variables."""
    found, of_variables = gradient(*outer, variables=variables) if variables else (gradient(*outer), [])
    several = list(found) if isinstance(found, list | tuple) else [found]
    if len(several) != count:
        raise ArgumentValueError(
            f"custom_gradient: {len(several)} gradients were returned, should be one for each of {count} arguments"
        )
    if len(of_variables) != len(variables):
        raise ArgumentValueError(
            f"custom_gradient: {len(of_variables)} gradients of variables were returned, should be one for each of "
            f"{len(variables)} variables"
        )
    return [*several, *of_variables]


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """Return copies of tensors."""
    return [adopt(plain(convert_to_tensor(one)).clone()) for one in input]
