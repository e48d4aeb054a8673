"""``mindspore.nn.loss``: losses (source: MindSpore 2.10.0)."""

from collshim.mindspore.nn.loss import loss
from collshim.mindspore.nn.loss.loss import *  # noqa: F403

__all__: list[str] = []
__all__ += loss.__all__
