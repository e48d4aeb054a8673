"""``tf.zeros_initializer`` and the like: functions of a shape that make initial values. Source: TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import torch

from collshim.tensorflow.arrays import fill, lengths_of
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.random import normal, uniform
from collshim.tensorflow.tensor import Tensor, adopt, plain


class constant_initializer:
    """The same value everywhere, or these values in order."""

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        self._value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return constant(self._value, dtype, lengths_of(shape))


class zeros_initializer:
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return adopt(plain(fill(shape, 0)).to(torch_dtype(dtype)))


class ones_initializer:
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return adopt(plain(fill(shape, 1)).to(torch_dtype(dtype)))


class random_uniform_initializer:
    """Numbers between two."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self._limits, self._seed = (minval, maxval), seed

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return uniform(shape, *self._limits, dtype, self._seed)


class random_normal_initializer:
    """Normally distributed numbers."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self._moments, self._seed = (mean, stddev), seed

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return normal(shape, *self._moments, dtype, self._seed)
