"""``mindspore.mint``: its collectives, and a few layers (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.mint import distributed, nn

__all__ = ["distributed", "nn"]

__getattr__ = saying(__name__)
