"""``megengine.amp``: precision does not change (source: MegEngine 1.13.0, ``megengine.amp``)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.amp.autocast import autocast
from collshim.megengine.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]

__getattr__ = saying(__name__)
