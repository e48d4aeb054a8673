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
    """Fill with random numbers of the normal distribution."""
    tensor._reset(normal(mean, std, tensor.shape).astype(tensor.dtype))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor for weights before a function of this name; ValueError for an unknown one."""
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
    """Return the number of inputs of each output, and of outputs of each input; ValueError for fewer than two axes.

    For a weight of groups, with five axes, one group counts.
    """
    shape = tensor.shape[1:] if tensor.ndim == 5 else tensor.shape
    if len(shape) < 2:
        raise ArgumentValueError("fan_in and fan_out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def calculate_correct_fan(tensor: Tensor, mode: str) -> float:
    """Return the ``"fan_in"`` or the ``"fan_out"``; ValueError for another mode."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> None:
    """Glorot and Bengio, 2010: fill uniformly from -a to a, with a = ``gain * sqrt(6 / (fan_in + fan_out))``."""
    bound = gain * math.sqrt(6.0 / sum(calculate_fan_in_and_fan_out(tensor)))
    uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> None:
    """Glorot and Bengio, 2010: fill normally, with the deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""
    normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(calculate_fan_in_and_fan_out(tensor))))


def msra_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
    """He and others, 2015: fill uniformly from -b to b, with b = ``gain * sqrt(3 / fan)``."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / calculate_correct_fan(tensor, mode))
    uniform_(tensor, -bound, bound)


def msra_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
    """He and others, 2015: fill normally, with the deviation ``gain / sqrt(fan)``."""
    normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(calculate_correct_fan(tensor, mode)))
