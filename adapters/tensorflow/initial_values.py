"""``tf.zeros_initializer`` and so on: functions from a shape to initial values. Source: TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.creation import fill
from collshim.tensorflow.random import normal, uniform
from collshim.tensorflow.tensor import Tensor, adopt, plain


class _Initializer:
    """A function of a shape and a dtype; ``get_config`` returns the arguments that it was created with."""

    def __init__(self, **config: Any) -> None:
        self._config = config

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create an equal initializer."""
        return dict(self._config)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return an initializer with these arguments."""
        return cls(**config)


class constant_initializer(_Initializer):
    """Initializes with one value, or with a list of values in order."""

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        super().__init__(value=value)
        self._value = value

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return constant(self._value, dtype, lengths_of(shape))


class zeros_initializer(_Initializer):
    """Initializes with zeros."""

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return adopt(plain(fill(shape, 0)).to(torch_dtype(dtype)))


class ones_initializer(_Initializer):
    """Initializes with ones."""

    def __init__(self) -> None:
        super().__init__()

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape."""
        return adopt(plain(fill(shape, 1)).to(torch_dtype(dtype)))


class random_uniform_initializer(_Initializer):
    """Initializes with uniformly distributed numbers from ``minval`` to ``maxval``."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        super().__init__(minval=minval, maxval=maxval, seed=seed)
        self._limits, self._seed = (minval, maxval), seed

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape.

        Raises:
            ValueError: ``dtype`` is bool.
            TypeError: ``dtype`` cannot hold the limits.
        """
        if torch_dtype(dtype) is torch.bool:
            raise ArgumentValueError(f"Argument `dtype` expected to be numeric. Received {dtype}.")
        for limit in self._limits:
            constant(limit, dtype)
        return uniform(shape, *self._limits, dtype, self._seed)


class random_normal_initializer(_Initializer):
    """Initializes with normally distributed numbers."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(mean=mean, stddev=stddev, seed=seed)
        self._moments, self._seed = (mean, stddev), seed

    def __call__(self, shape: Any, dtype: Any = torch.float32, **kwargs: Any) -> Tensor:
        """Return a tensor of this shape.

        Raises:
            ValueError: ``dtype`` is not a floating-point dtype.
        """
        if not torch_dtype(dtype).is_floating_point:
            raise ArgumentValueError(f"Argument `dtype` is expected to be floating point. Received: {dtype}.")
        return normal(shape, *self._moments, dtype, self._seed)
