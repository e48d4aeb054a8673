"""Activations of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool
from collshim.mindspore.nn.cell import Cell

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSoftmax",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
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
        return functional.relu6(x)


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
        return functional.leaky_relu(x, self.alpha)


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
