"""``tf.py_function``, ``tf.numpy_function``, ``tf.custom_gradient`` and choices between functions.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
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

    The result is a tensor or a list of tensors; the gradients are for the tensors among the positional arguments.
    """
    if f is None:
        return custom_gradient
    function = f

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        tensors = [plain(convert_to_tensor(one)) for one in args]
        shape: list[Any] = []

        class Custom(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *given: torch.Tensor) -> Any:
                result, ctx.gradient = function(*[adopt(one) for one in given], **kwargs)
                shape.append(result)
                found = result if isinstance(result, list | tuple) else [result]
                return tuple(plain(convert_to_tensor(one)).detach() for one in found)

            @staticmethod
            def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
                found = ctx.gradient(*[adopt(one) for one in gradients])
                several = found if isinstance(found, list | tuple) else [found]
                return tuple(None if one is None else plain(convert_to_tensor(one)) for one in several)

        results = [adopt(one) for one in Custom.apply(*tensors)]  # type: ignore[no-untyped-call]
        return type(shape[0])(results) if isinstance(shape[0], list | tuple) else results[0]

    return call


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    """Return copies of tensors."""
    return [adopt(plain(convert_to_tensor(one)).clone()) for one in input]
