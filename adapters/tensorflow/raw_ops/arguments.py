"""The arguments of ``tf.raw_ops``: inputs are tensors, attributes are Python values. Source: TensorFlow 2.21."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import torch

from collshim.arrays import is_array
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute.dtypes import REDUCED as REDUCED
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.tensor import adopt, dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape

_P = ParamSpec("_P")
_R = TypeVar("_R")

GATHERED = {dtype: name for dtype, name in REDUCED.items() if dtype is not torch.bfloat16}
BROADCAST = {torch.bool: "bool", **GATHERED}
MERGE_OPS = {"Min": "min", "Max": "max", "Mul": "prod", "Add": "sum"}
FINAL_OPS = ("Id", "Div")
_INT32 = np.iinfo(np.int32)


def keyword_only(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap an operation so that it takes keyword arguments only; its signature stays as TensorFlow shows it."""
    name, keys = function.__name__, list(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if args:
            raise ArgumentTypeError(
                f"{name} only takes keyword args (possible keys: {keys}). Please pass these args as kwargs instead."
            )
        return function(*args, **kwargs)

    return call


def tensor_of(op: str, value: Any, allowed: dict[torch.dtype, str]) -> torch.Tensor:
    """Return an operation's input as a torch tensor.

    Raises:
        ValueError: it cannot be converted. InvalidArgumentError: its dtype is not one of ``allowed``.
    """
    if value is None:
        raise ArgumentValueError(f"{op}: input is None, should be a tensor")
    tensor: torch.Tensor = plain(convert_to_tensor(value))
    require_dtype(op, "T", tensor.dtype, allowed)
    return tensor


def require_dtype(op: str, attribute: str, dtype: torch.dtype, allowed: dict[torch.dtype, str]) -> None:
    """Refuse a dtype that the operation does not take.

    Raises:
        InvalidArgumentError: the dtype is not one of ``allowed``.
    """
    if dtype not in allowed:
        raise _not_listed(op, attribute, allowed.get(dtype, dtype_name(dtype)), ", ".join(allowed.values()))


def dtype_of(op: str, value: Any, allowed: dict[torch.dtype, str]) -> torch.dtype:
    """Return the attribute ``T``, a dtype.

    Raises:
        TypeError: it is not a dtype. InvalidArgumentError: it is not one of ``allowed``.
    """
    try:
        if value is None:
            raise ArgumentTypeError("no dtype")
        dtype: torch.dtype = torch_dtype(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{op}: Expected DataType for argument 'T' not {value!r}.") from error
    require_dtype(op, "T", dtype, allowed)
    return dtype


def choice_of(op: str, argument: str, value: Any, allowed: Sequence[str]) -> str:
    """Return an attribute that has one of several values.

    Raises:
        TypeError: it is not a string. InvalidArgumentError: it is not one of ``allowed``.
    """
    text = string_of(op, argument, value)
    if text not in allowed:
        raise _not_listed(op, argument, f'"{text}"', ", ".join(f'"{one}"' for one in allowed))
    return text


def string_of(op: str, argument: str, value: Any) -> str:
    """Return an attribute that is a string.

    Raises:
        TypeError: it is not a string.
    """
    if not isinstance(value, str | bytes):
        raise ArgumentTypeError(f"{op}: Expected string for argument {argument!r} not {value!r}.")
    return value if isinstance(value, str) else value.decode()


def attribute_int(op: str, argument: str, value: Any) -> int:
    """Return an attribute that is an int of 32 bits; floats lose their fraction.

    Raises:
        TypeError: it is not a number. InvalidArgumentError: it is too large.
    """
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{op}: Expected int for argument {argument!r} not {value!r}.") from error
    if not _INT32.min <= number <= _INT32.max:
        raise invalid_argument(f"{op}: Attr {argument} has value {number} out of range for an int32")
    return number


def input_int(op: str, argument: str, value: Any) -> int:
    """Return an input that is an int32 tensor of shape ``()``.

    Raises:
        TypeError: it is not an int. ValueError: it is a tensor of a different dtype. InvalidArgumentError: it has axes.
    """
    tensor = convert_to_tensor(int(value) if isinstance(value, bool) else value, torch.int32)
    if tensor.dim():
        raise invalid_argument(f"{op}: Unexpected dimensions on input {argument}, got {list(tensor.shape)}")
    return int(tensor)


def require_size(op: str, number: int) -> None:
    """Refuse a size of a group that is not positive.

    Raises:
        InvalidArgumentError: it is not positive.
    """
    if number < 1:
        raise invalid_argument(f"{op}: group_size must be positive integer but got {number}")


def seconds_of(op: str, value: Any) -> float | None:
    """Return a limit in seconds; None if ``value`` is 0, negative or None, which means the default limit.

    Raises:
        TypeError: it is not a number.
    """
    try:
        seconds = 0.0 if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{op}: Expected float for argument 'timeout_seconds' not {value!r}.") from error
    return seconds if seconds > 0 else None


def require_hint(op: str, value: Any) -> None:
    """Refuse a ``communication_hint`` that is not a string; None is the default, and no hint has an effect.

    Raises:
        TypeError: it is not a string.
    """
    if value is not None:
        string_of(op, "communication_hint", value)


def require_list(op: str, argument: str, value: Any) -> None:
    """Refuse an argument that is not a list.

    Raises:
        TypeError: it is neither a list nor a tuple.
    """
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(f"Expected list for {argument!r} argument to {op!r} Op, not {value!r}.")


def require_tokens(op: str, value: Any) -> None:
    """Refuse ``ordering_token`` if it is not a list of resources; they have no effect, as calls run in program order.

    Raises:
        TypeError: it is not a list. ValueError: one of them is a tensor or a number.
    """
    require_list(op, "ordering_token", value)
    for token in value:
        if token is None or is_array(token) or isinstance(token, int | float | complex):
            raise ArgumentValueError(f"{op}: Tensor conversion requested dtype resource for {token!r}")


def input_shape(op: str, value: Any) -> tuple[int, ...]:
    """Return an input that is a shape: an int32 or int64 tensor with one axis.

    Raises:
        InvalidArgumentError: it has another dtype, or a negative length.
    """
    tensor = convert_to_tensor(value, torch.int32 if isinstance(value, list | tuple) and not value else None)
    require_dtype(op, "Tshape", tensor.dtype, {torch.int32: "int32", torch.int64: "int64"})
    if tensor.dim() != 1:
        raise invalid_argument(f"{op}: shape must be a vector, got a tensor of shape {list(tensor.shape)}")
    lengths = tuple(int(length) for length in tensor.tolist())
    for length in lengths:
        if length < 0:
            raise invalid_argument(f"{op}: Dimension {length} must be >= 0")
    return lengths


def attribute_shape(op: str, value: Any) -> tuple[int, ...]:
    """Return an attribute that is a shape; an unknown one is ``()``, as in TensorFlow.

    Raises:
        TypeError: it is not a shape. ValueError: it has a negative length.
    """
    shape = value if isinstance(value, TensorShape) else TensorShape(value)
    return () if shape.rank is None else tuple(0 if length is None else int(length) for length in shape)


def without_gradient(op: str, source: torch.Tensor, result: torch.Tensor) -> Any:
    """Return ``result``, computed from ``source``; a gradient that passes through it raises a LookupError."""
    if not (source.requires_grad and torch.is_grad_enabled()):
        return adopt(result)
    return adopt(cast(Callable[..., torch.Tensor], _NoGradient.apply)(op, source, result))


class _NoGradient(torch.autograd.Function):
    """An operation for which TensorFlow has no gradient."""

    @staticmethod
    def forward(ctx: Any, op: str, source: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        ctx.op = op
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise also(ArgumentError, LookupError)(f"gradient registry has no entry for: {ctx.op}")


def _not_listed(op: str, attribute: str, got: str, allowed: str) -> Exception:
    return invalid_argument(
        f"{op}: Value for attr {attribute!r} of {got} is not in the list of allowed values: {allowed}"
    )
