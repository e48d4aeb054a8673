"""``mindspore.train``: ``Model``, callbacks, metrics, checkpoints (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.train import callback, metrics
from collshim.mindspore.train.amp import build_train_network
from collshim.mindspore.train.callback import *  # noqa: F403
from collshim.mindspore.train.loss_scale_manager import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
)
from collshim.mindspore.train.metrics import *  # noqa: F403
from collshim.mindspore.train.model import Model
from collshim.mindspore.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = [
    "DynamicLossScaleManager",
    "FixedLossScaleManager",
    "LossScaleManager",
    "Model",
    "build_train_network",
    "load_checkpoint",
    "load_param_into_net",
    "save_checkpoint",
]
__all__ += callback.__all__
__all__ += metrics.__all__

__getattr__ = saying(__name__)
