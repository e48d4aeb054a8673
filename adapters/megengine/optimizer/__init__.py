"""``megengine.optimizer``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.optimizer.adadelta import Adadelta
from collshim.megengine.optimizer.adagrad import Adagrad
from collshim.megengine.optimizer.adam import Adam
from collshim.megengine.optimizer.adamw import AdamW
from collshim.megengine.optimizer.clip_grad import clip_grad_norm, clip_grad_value
from collshim.megengine.optimizer.lr_scheduler import LRScheduler
from collshim.megengine.optimizer.multi_step_lr import MultiStepLR
from collshim.megengine.optimizer.optimizer import Optimizer
from collshim.megengine.optimizer.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "LRScheduler",
    "MultiStepLR",
    "Optimizer",
    "clip_grad_norm",
    "clip_grad_value",
]

__getattr__ = saying(__name__)
