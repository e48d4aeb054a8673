"""``mindspore.train.metrics`` (source: MindSpore 2.10.0)."""

from collshim.mindspore.train.metrics import counting, metrics
from collshim.mindspore.train.metrics.counting import *  # noqa: F403
from collshim.mindspore.train.metrics.metric import Metric
from collshim.mindspore.train.metrics.metrics import *  # noqa: F403

__all__ = ["Metric"]
__all__ += counting.__all__
__all__ += metrics.__all__
