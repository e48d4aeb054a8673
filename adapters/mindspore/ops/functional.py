"""``mindspore.ops.functional``: another path to the functions of ``ops`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.mindspore.gradients import grad, value_and_grad
from collshim.mindspore.ops import function
from collshim.mindspore.ops.function import *  # noqa: F403

__all__ = ["grad", "value_and_grad"]
__all__ += function.__all__

__getattr__ = saying(__name__)
