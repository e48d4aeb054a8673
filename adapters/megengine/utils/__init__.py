"""``megengine.utils``: only ``future`` and ``hook``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.utils import future, hook

__all__ = ["future", "hook"]

__getattr__ = saying(__name__)
