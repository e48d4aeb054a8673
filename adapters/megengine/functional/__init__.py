"""``megengine.functional``, of which collshim covers ``distributed``."""

from __future__ import annotations

from collshim.megengine._absent import saying
from collshim.megengine.functional import distributed

__all__ = ["distributed"]

__getattr__ = saying(__name__, "distributed, the collectives; compute with torch or NumPy")
