"""Activations of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_int
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.slopes import hardswish, leaky_relu, limited, relu6
from collshim.mindspore.tensor import Tensor

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "FastGelu",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softsign",
    "Tanh",
    "get_activation",
]


class _Activation(Cell):
    """An elementwise function without settings."""

    def __init__(self) -> None:
        super().__init__()


class ReLU(_Activation):
    """``max(x, 0)``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.relu(x)


class ReLU6(_Activation):
    """``min(max(x, 0), 6)``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return relu6(x)


class Sigmoid(_Activation):
    """``1 / (1 + exp(-x))``."""

    def construct(self, input: Any) -> Any:
        """Return the result, in the shape of the input."""
        return torch.sigmoid(input)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    def construct(self, input: Any) -> Any:
        """Return the result, in the shape of the input."""
        return torch.tanh(input)


class SiLU(_Activation):
    """``x * sigmoid(x)``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.silu(x)


class ELU(Cell):
    """``x`` if it is positive, otherwise ``alpha * (exp(x) - 1)``.

    Raises:
        ValueError: ``alpha`` is not 1.0.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        if alpha != 1.0:
            refuse(ValueError, f"For 'ELU', the 'alpha' must be 1.0, but got {alpha}")

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.elu(x)


class LeakyReLU(Cell):
    """``x`` if it is positive, otherwise ``alpha * x``."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return leaky_relu(x, self.alpha)


class GELU(Cell):
    """``x`` times the normal distribution function at ``x``; with ``approximate``, the tanh approximation."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = "tanh" if check_bool(approximate, "approximate", self.cls_name) else "none"

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.gelu(x, approximate=self.approximate)


class Softmax(Cell):
    """``exp(x)`` divided by its sum along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Any) -> Any:
        """Return the result, in the shape of the input."""
        return torch.softmax(input, self.axis)


class LogSoftmax(Cell):
    """The logarithm of Softmax."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return torch.log_softmax(x, self.axis)


class FastGelu(_Activation):
    """``x * sigmoid(1.702 * x)``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return x * torch.sigmoid(1.702 * x)


class HSigmoid(_Activation):
    """``relu6(x + 3) / 6``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.hardsigmoid(x)


class HSwish(_Activation):
    """``x * relu6(x + 3) / 6``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return hardswish(x)


class LogSigmoid(_Activation):
    """The logarithm of Sigmoid."""

    def construct(self, input: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.logsigmoid(input)


class Mish(_Activation):
    """``x * tanh(log(1 + exp(x)))``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.mish(x)


class Softsign(_Activation):
    """``x / (1 + abs(x))``."""

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.softsign(x)


class CELU(Cell):
    """``x`` if it is positive, otherwise ``alpha * (exp(x / alpha) - 1)``."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.celu(x, self.alpha)


class HShrink(Cell):
    """``x`` if its absolute value is above ``lambd``, otherwise 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, input_x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.hardshrink(input_x, self.lambd)


class SoftShrink(Cell):
    """``x`` moved towards 0 by ``lambd``, or 0 if it is nearer."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def construct(self, input: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.softshrink(input, self.lambd)


class Hardtanh(Cell):
    """``x``, but at least ``min_val`` and at most ``max_val``.

    Raises:
        ValueError: ``min_val`` is not below ``max_val``.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        if min_val >= max_val:
            refuse(ValueError, f"For Hardtanh, min_val should be less than max_val, but got {min_val} and {max_val}")
        self.min_val, self.max_val = min_val, max_val

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return limited(x, self.min_val, self.max_val)


class PReLU(Cell):
    """``x`` if it is positive, otherwise ``w * x``; ``w`` is a parameter, one for each channel or for all.

    Raises:
        TypeError: ``channel`` is not an int.
        ValueError: ``channel`` is not positive.
    """

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        check_int(channel, "channel", self.cls_name, least=1)
        own = Tensor([float(w)] * channel if isinstance(w, int | float) else w, torch.float32)
        self.w = Parameter(own, name="a")

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        return functional.prelu(x, self.w.to(x.dtype))


_NAMED: dict[str, type[Cell]] = {
    "softmax": Softmax,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "silu": SiLU,
    "tanh": Tanh,
    "gelu": GELU,
    "elu": ELU,
    "sigmoid": Sigmoid,
    "leakyrelu": LeakyReLU,
    "fast_gelu": FastGelu,
    "hshrink": HShrink,
    "hsigmoid": HSigmoid,
    "hswish": HSwish,
    "logsigmoid": LogSigmoid,
    "mish": Mish,
    "prelu": PReLU,
    "softshrink": SoftShrink,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Return the activation of this name; None for None.

    Raises:
        KeyError: there is no activation of this name.
    """
    if name is None:
        return None
    if name not in _NAMED:
        refuse(KeyError, f"For {prim_name!r}, the 'name' must be in {list(_NAMED)}, but got {name}")
    return _NAMED[name]()
