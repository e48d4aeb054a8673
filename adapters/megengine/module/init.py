"""Initial values (source: MegEngine 1.13.0, ``megengine.module.init``); each function fills a tensor in place."""

from __future__ import annotations

import math

from collshim.errors import ArgumentValueError
from collshim.megengine.functional.tensor import full
from collshim.megengine.random.rng import normal, uniform
from collshim.megengine.tensor import Tensor

__all__ = [
    "calculate_correct_fan",
    "calculate_fan_in_and_fan_out",
    "calculate_gain",
    "fill_",
    "msra_normal_",
    "msra_uniform_",
    "normal_",
    "ones_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def fill_(tensor: Tensor, val: float) -> None:
    """Fill with one number."""
    tensor._reset(full(tensor.shape, val, dtype=tensor.dtype))


def zeros_(tensor: Tensor) -> None:
    """Fill with zeros."""
    fill_(tensor, 0)


def ones_(tensor: Tensor) -> None:
    """Fill with ones."""
    fill_(tensor, 1)


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> None:
    """Fill with uniform random numbers from ``a`` to ``b``."""
    tensor._reset(uniform(a, b, tensor.shape).astype(tensor.dtype))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> None:
    """Fill with normally distributed random numbers."""
    tensor._reset(normal(mean, std, tensor.shape).astype(tensor.dtype))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain for weights before a function of this name; ValueError for an unknown name."""
    if nonlinearity in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "sigmoid"):
        return 1.0
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else float(param)) ** 2))
    raise ArgumentValueError(f"Unsupported nonlinearity {nonlinearity}")


def calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[float, float]:
    """Return the number of inputs per output, and of outputs per input; ValueError for fewer than two axes.

    For a weight with groups, which has five axes, they are those of one group.
    """
    shape = tensor.shape[1:] if tensor.ndim == 5 else tensor.shape
    if len(shape) < 2:
        raise ArgumentValueError("fan_in and fan_out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def calculate_correct_fan(tensor: Tensor, mode: str) -> float:
    """Return the ``"fan_in"`` or the ``"fan_out"``; ValueError for any other mode."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> None:
    """Fill uniformly from -a to a, with a = ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(calculate_fan_in_and_fan_out(tensor)))
    uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> None:
    """Fill normally, with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(calculate_fan_in_and_fan_out(tensor))))


def msra_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
    """Fill uniformly from -b to b, with b = ``gain * sqrt(3 / fan)`` (He et al., 2015)."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / calculate_correct_fan(tensor, mode))
    uniform_(tensor, -bound, bound)


def msra_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
    """Fill normally, with standard deviation ``gain / sqrt(fan)`` (He et al., 2015)."""
    normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(calculate_correct_fan(tensor, mode)))
