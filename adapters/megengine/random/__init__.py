"""``megengine.random``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.random.rng import RNG, normal, permutation, seed, shuffle, uniform

__all__ = ["RNG", "normal", "permutation", "seed", "shuffle", "uniform"]

__getattr__ = saying(__name__)
