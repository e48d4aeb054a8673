"""``tf.random``: torch's random numbers under TensorFlow's names, and ``Generator`` with TensorFlow's own numbers.

Except for ``Generator`` and the stateless functions, the same seed yields different numbers than in TensorFlow.
"""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.random import experimental
from collshim.tensorflow.random_generators import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
    stateless_normal,
    stateless_uniform,
)
from collshim.tensorflow.tensor import Tensor, adopt, plain

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "experimental",
    "get_global_generator",
    "normal",
    "set_global_generator",
    "set_seed",
    "stateless_normal",
    "stateless_uniform",
    "uniform",
]


def set_seed(seed: int) -> None:
    """Seed the random number generator of this process."""
    torch.manual_seed(seed)


def _generator(seed: int | None) -> torch.Generator | None:
    return None if seed is None else torch.Generator().manual_seed(seed)


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = torch.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return normally distributed numbers; with a ``seed``, the same at every call."""
    kind = torch_dtype(dtype)
    width, center = plain(convert_to_tensor(stddev, kind)), plain(convert_to_tensor(mean, kind))
    return adopt(torch.randn(lengths_of(shape), dtype=kind, generator=_generator(seed)) * width + center)


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = torch.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return numbers from ``minval`` to below ``maxval``, by default 1; with a ``seed``, the same at every call."""
    kind, lengths, generator = torch_dtype(dtype), lengths_of(shape), _generator(seed)
    if not kind.is_floating_point:
        if maxval is None:
            raise ArgumentValueError(f"Must specify maxval for integer dtype {kind}")
        return adopt(torch.randint(int(minval), int(maxval), lengths, dtype=kind, generator=generator))
    least, limit = (plain(convert_to_tensor(end, kind)) for end in (minval, 1 if maxval is None else maxval))
    return adopt(torch.rand(lengths, dtype=kind, generator=generator) * (limit - least) + least)
