"""``megengine.autodiff``: gradients of what torch computed between the collectives."""

from __future__ import annotations

from collshim.megengine._absent import saying
from collshim.megengine.autodiff.grad_manager import GradManager

__all__ = ["GradManager"]

__getattr__ = saying(__name__, "GradManager")
