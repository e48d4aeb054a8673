"""``tf.debugging``: assertions about tensors. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.arithmetic import pair, tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data_types import DType
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.tensor import Tensor, dtype_name

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_scalar",
    "assert_type",
    "check_numerics",
]

_SHOWN = 3


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> None:
    """Raise an error that shows the values of ``data`` unless a condition holds.

    Raises:
        InvalidArgumentError: the condition does not hold for all elements.
    """
    if not bool(tensor(condition).all()):
        shown = " ".join(str(convert_to_tensor(one).numpy()) if not isinstance(one, str) else one for one in data)
        raise invalid_argument(f"Expected '{condition}' to be true. Summarized data: {shown}")


def _comparing(sign: str, holds: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., None]:
    @checked
    def check(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        first, second = pair(x, y, "Equal")
        _require(holds(first, second), f"Condition x {sign} y did not hold.", message, summarize, x=first, y=second)

    check.__doc__ = f"Refuse elements for which ``x {sign} y`` does not hold, with an InvalidArgumentError."
    return check


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raise an InvalidArgumentError unless ``x != y`` holds for all elements."""
    _comparing("!=", torch.ne)(x, y, message, summarize)


assert_equal = _comparing("==", torch.eq)
assert_less, assert_less_equal = _comparing("<", torch.lt), _comparing("<=", torch.le)
assert_greater, assert_greater_equal = _comparing(">", torch.gt), _comparing(">=", torch.ge)


def _signed(sign: str, holds: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., None]:
    def check(x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        found = tensor(x)
        _require(holds(found), f"Condition x {sign} 0 did not hold element-wise:", message, summarize, x=found)

    check.__doc__ = f"Refuse elements for which ``x {sign} 0`` does not hold, with an InvalidArgumentError."
    return check


assert_positive, assert_negative = _signed(">", lambda x: x > 0), _signed("<", lambda x: x < 0)
assert_non_negative, assert_non_positive = _signed(">=", lambda x: x >= 0), _signed("<=", lambda x: x <= 0)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Require that no element differs by more than ``atol + rtol * |y|``; both are ten times the precision by default.

    Raises:
        InvalidArgumentError: some elements differ by more.
    """
    first, second = pair(x, y)
    if not first.is_floating_point():
        raise ArgumentValueError(f"data type {dtype_name(first.dtype)} not inexact")
    precision = 10 * torch.finfo(first.dtype).eps
    limit = (precision if atol is None else atol) + (precision if rtol is None else rtol) * second.abs()
    text = "x and y not equal to tolerance"
    _require((first - second).abs() < limit, text, message, summarize, x=first, y=second)


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Require that a tensor has ``rank`` axes.

    Raises:
        ValueError: the tensor has a different number of axes, or ``rank`` is not a scalar.
    """
    found = tensor(x)
    if tensor(rank).dim():
        raise ArgumentValueError("Rank must be a scalar.")
    if found.dim() != int(rank):
        shown = "" if message is None else f"{message} "
        raise ArgumentValueError(
            f"{shown}Tensor {x} must have rank {int(rank)}.  Received rank {found.dim()}, shape {tuple(found.shape)}"
        )


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Require that a tensor is a scalar.

    Raises:
        ValueError: the tensor has axes.
    """
    found = convert_to_tensor(tensor)
    if found.dim():
        raise ArgumentValueError(f"{message or ''}Expected scalar shape, saw shape: {found.shape}.")


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Require that a tensor has the dtype ``tf_type``.

    Raises:
        TypeError: the tensor has a different dtype.
    """
    found = convert_to_tensor(tensor)
    if found.dtype is not torch_dtype(tf_type):
        shown = "" if message is None else f"{message} "
        raise ArgumentTypeError(
            f"{shown}{tensor!r} must be of type {DType(torch_dtype(tf_type))!r}; got {DType(found.dtype)!r}"
        )


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Return a tensor whose elements are all finite.

    Raises:
        InvalidArgumentError: some elements are infinite or NaN.
    """
    found = convert_to_tensor(tensor)
    kinds = [kind for kind, is_so in (("Inf", torch.isinf), ("NaN", torch.isnan)) if bool(is_so(found).any())]
    if kinds:
        raise invalid_argument(f"{message} : Tensor had {' and '.join(kinds)} values")
    return found


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Call ``check_numerics``."""
    return check_numerics(x, message)


def _require(
    holds: torch.Tensor, text: str, message: str | None, summarize: int | None, **values: torch.Tensor
) -> None:
    if bool(holds.all()):
        return
    count = _SHOWN if summarize is None else summarize
    shown = "\n".join(
        f"First {count} elements of {name}:\n{one.reshape(-1)[:count].tolist()}" for name, one in values.items()
    )
    raise invalid_argument(f"{message or ''}\n{text}\n{shown}")


__getattr__ = saying(__name__)


name_functions(globals())
