"""``mindspore.ops.function.comm_func``: ``ops.communication`` under its other path (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.ops import communication
from collshim.mindspore.ops.communication import *  # noqa: F403

__all__: list[str] = []
__all__ += communication.__all__

__getattr__ = saying(__name__)
