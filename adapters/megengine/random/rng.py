"""Random numbers (source: MegEngine 1.13.0, ``megengine.random.rng``); MegEngine's differ for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.megengine.core.tensor.values import Value, ints, require, value_of
from collshim.megengine.random._generator import generator as rank_generator
from collshim.megengine.random._generator import seed
from collshim.megengine.tensor import Tensor, wrapped

__all__ = ["RNG", "normal", "permutation", "seed", "shuffle", "uniform"]


class RNG:
    """A separate random number generator.

    Args:
        seed: the seed; None for a random one.
        device: the name of the results' device.
    """

    def __init__(self, seed: int | None = None, device: str | None = None) -> None:
        own = torch.Generator()
        own.seed() if seed is None else own.manual_seed(seed)
        self._generator: Callable[[], torch.Generator] = lambda: own
        self._device = device

    def uniform(self, low: float = 0, high: float = 1, size: Any = None) -> Tensor:
        """Return uniformly distributed numbers from ``low`` up to ``high``; one number if ``size`` is None.

        Raises:
            AssertionError: ``low`` is not less than ``high``.
        """
        require(low < high, "Uniform is not defined when low >= high")
        return self._put(torch.rand(_shape(size), generator=self._generator()) * (high - low) + low)

    def normal(self, mean: Any = 0, std: Any = 1, size: Any = None) -> Tensor:
        """Return normally distributed numbers; if ``size`` is None, in the shape of ``mean`` and ``std``."""
        center, width = value_of(mean).float(), value_of(std).float()
        shape = torch.broadcast_shapes(center.shape, width.shape) if size is None else _shape(size)
        return self._put(torch.randn(shape, generator=self._generator()) * width + center)

    def permutation(self, n: Any, *, dtype: Any = "int32") -> Tensor:
        """Return the integers below ``n`` in random order, or a tensor's slices along axis 0 in random order."""
        if isinstance(n, Tensor):
            result: Tensor = n[torch.randperm(len(n), generator=self._generator())]
            return result
        return self._put(torch.randperm(int(n), generator=self._generator())).astype(dtype)

    def shuffle(self, inp: Tensor) -> None:
        """Shuffle a tensor's slices along axis 0, in place."""
        inp._reset(self.permutation(inp))

    def _put(self, value: Value) -> Tensor:
        result: Tensor = wrapped(value)
        return result if self._device is None else result.to(self._device)


class _OfRank(RNG):
    """This rank's generator, which ``seed`` seeds."""

    def __init__(self) -> None:
        self._generator, self._device = rank_generator, None


def _shape(size: Any) -> tuple[int, ...]:
    return (1,) if size is None else ints(size)


_rng = _OfRank()
uniform, normal, permutation, shuffle = _rng.uniform, _rng.normal, _rng.permutation, _rng.shuffle
