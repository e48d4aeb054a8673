"""``mindspore.train.metrics`` (source: MindSpore 2.10.0)."""

from collshim.mindspore.train.metrics import metrics
from collshim.mindspore.train.metrics.metric import Metric
from collshim.mindspore.train.metrics.metrics import *  # noqa: F403

__all__ = ["Metric"]
__all__ += metrics.__all__
