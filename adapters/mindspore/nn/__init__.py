"""``mindspore.nn``: ``Cell`` and ``DistributedGradReducer`` (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.grad_reducer import DistributedGradReducer

__all__ = ["Cell", "DistributedGradReducer"]

__getattr__ = saying(__name__)
