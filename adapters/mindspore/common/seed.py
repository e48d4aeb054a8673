"""``mindspore.common.seed`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import numpy as np
import torch

from collshim.adapting.refusing import refuse

__all__ = ["get_seed", "set_seed"]
_SEED: list[int] = []


def set_seed(seed: int) -> None:
    """Seed NumPy, torch and the initializers; the same seed gives other numbers than in MindSpore.

    Raises:
        TypeError: the seed is not an int.
        ValueError: the seed is negative.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        refuse(TypeError, f"For 'set_seed', the argument 'seed' must be int, but got {type(seed)}")
    if seed < 0:
        refuse(ValueError, f"For 'set_seed', the argument 'seed' must not be negative, but got {seed}")
    np.random.seed(seed)  # noqa: NPY002  # MindSpore seeds NumPy's
    torch.manual_seed(seed)
    _SEED[:] = [seed]


def get_seed() -> int | None:
    """Return the last seed that was set; None without one."""
    return _SEED[0] if _SEED else None
