"""``mindspore.nn``: Cells, layers, losses, optimizers (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.nn import dynamic_lr, layer, learning_rate_schedule, loss, optim, wrap
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.dynamic_lr import *  # noqa: F403
from collshim.mindspore.nn.layer.activation import *  # noqa: F403
from collshim.mindspore.nn.layer.basic import *  # noqa: F403
from collshim.mindspore.nn.layer.container import *  # noqa: F403
from collshim.mindspore.nn.layer.conv import *  # noqa: F403
from collshim.mindspore.nn.layer.embedding import *  # noqa: F403
from collshim.mindspore.nn.layer.normalization import *  # noqa: F403
from collshim.mindspore.nn.layer.pooling import *  # noqa: F403
from collshim.mindspore.nn.layer.sync_normalization import *  # noqa: F403
from collshim.mindspore.nn.learning_rate_schedule import *  # noqa: F403
from collshim.mindspore.nn.loss.loss import *  # noqa: F403
from collshim.mindspore.nn.optim.adam import *  # noqa: F403
from collshim.mindspore.nn.optim.momentum import *  # noqa: F403
from collshim.mindspore.nn.optim.optimizer import *  # noqa: F403
from collshim.mindspore.nn.optim.sgd import *  # noqa: F403
from collshim.mindspore.nn.wrap.cell_wrapper import *  # noqa: F403
from collshim.mindspore.nn.wrap.grad_reducer import *  # noqa: F403
from collshim.mindspore.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)
from collshim.mindspore.train.metrics import metrics as _metrics
from collshim.mindspore.train.metrics.metric import Metric
from collshim.mindspore.train.metrics.metrics import *  # noqa: F403

__all__ = [
    "Cell",
    "DynamicLossScaleUpdateCell",
    "FixedLossScaleUpdateCell",
    "Metric",
    "TrainOneStepWithLossScaleCell",
]
__all__ += layer.__all__
__all__ += loss.__all__
__all__ += optim.__all__
__all__ += wrap.__all__
__all__ += _metrics.__all__
__all__ += dynamic_lr.__all__
__all__ += learning_rate_schedule.__all__

__getattr__ = saying(__name__)
