"""``tf.random``: torch's random numbers under TensorFlow's names, and ``Generator`` with TensorFlow's own numbers.

Except for ``Generator`` and the stateless functions, the same seed yields different numbers than in TensorFlow.
"""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.random import experimental
from collshim.tensorflow.random_generators import (
    Algorithm,
    Generator,
    create_rng_state,
    fold_in,
    get_global_generator,
    set_global_generator,
    split,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
)
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "experimental",
    "fold_in",
    "get_global_generator",
    "normal",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]


def set_seed(seed: int | None) -> None:
    """Seed the random number generator of this process; for None, with a number that differs in each process."""
    if seed is None:
        torch.seed()
    else:
        torch.manual_seed(int(seed))


def _generator(seed: float | None) -> torch.Generator | None:
    return None if seed is None else torch.Generator().manual_seed(int(seed))


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = torch.float32,
    seed: float | None = None,
    name: str | None = None,
) -> Tensor:
    """Return normally distributed numbers; with a ``seed``, the same at every call."""
    kind = torch_dtype(dtype)
    width, center = plain(convert_to_tensor(stddev, kind)), plain(convert_to_tensor(mean, kind))
    return adopt(torch.randn(lengths_of(shape), dtype=kind, generator=_generator(seed)) * width + center)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = torch.float32,
    seed: float | None = None,
    name: str | None = None,
) -> Tensor:
    """Return normally distributed numbers within two standard deviations of the mean; see ``normal``.

    Raises:
        TypeError: ``dtype`` is not a dtype of floats.
    """
    kind = torch_dtype(dtype)
    if not kind.is_floating_point:
        raise ArgumentTypeError(f"dtype is {dtype_name(kind)}, should be one of floats")
    width, center = plain(convert_to_tensor(stddev, kind)), plain(convert_to_tensor(mean, kind))
    drawn = torch.empty(lengths_of(shape), dtype=torch.float64 if kind is torch.float64 else torch.float32)
    torch.nn.init.trunc_normal_(drawn, a=-2.0, b=2.0, generator=_generator(seed))
    return adopt(drawn.to(kind) * width + center)


def shuffle(value: Any, seed: float | None = None, name: str | None = None) -> Tensor:
    """Return the rows of ``value`` in a random order; see ``normal``."""
    rows = convert_to_tensor(value)
    if rows.ndim == 0:
        return rows
    order = torch.randperm(rows.shape[0], generator=_generator(seed))
    return adopt(torch.index_select(plain(rows), 0, order))


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = torch.float32,
    seed: float | None = None,
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
