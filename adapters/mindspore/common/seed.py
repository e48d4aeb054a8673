"""``mindspore.common.seed`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import threading

import numpy as np
import torch

from collshim.adapting.refusing import refuse

__all__ = ["get_seed", "set_seed"]


class _Source(threading.local):
    """One thread's seed and random generator, independent of other threads, because each thread may be a rank."""

    seed: int | None = None
    generator: torch.Generator | None = None


_SOURCE = _Source()


def set_seed(seed: int) -> None:
    """Seed NumPy, torch and this rank's random numbers: initializers, Dropout, the order of datasets.

    Ranks that set the same seed draw the same numbers. MindSpore draws different numbers for the same seed.

    Raises:
        TypeError: the seed is not an int.
        ValueError: the seed is negative.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        refuse(TypeError, f"For 'set_seed', the argument 'seed' must be int, but got {type(seed)}")
    if seed < 0:
        refuse(ValueError, f"For 'set_seed', the argument 'seed' must not be negative, but got {seed}")
    np.random.seed(seed % 2**32)  # noqa: NPY002  # MindSpore seeds NumPy's
    torch.manual_seed(seed)
    _SOURCE.seed = seed
    _SOURCE.generator = torch.Generator().manual_seed(seed)


def get_seed() -> int | None:
    """Return the last seed that this rank set; None if it set none."""
    return _SOURCE.seed


def generator() -> torch.Generator | None:
    """Return this rank's random generator; None, which means torch's default, if this rank set no seed."""
    return _SOURCE.generator
