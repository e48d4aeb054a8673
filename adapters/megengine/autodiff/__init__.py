"""``megengine.autodiff``: gradients of the computations between the collectives."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.autodiff._function import Function
from collshim.megengine.autodiff.grad_manager import GradManager, GradManagerGroup

__all__ = ["Function", "GradManager", "GradManagerGroup"]

__getattr__ = saying(__name__)
