"""``oneflow.optim``: torch's optimizers with the defaults of OneFlow 0.9.0, and its schedules."""

from __future__ import annotations

from torch import optim

from collshim.adapting import fall_through
from collshim.oneflow._absent import REFUSED, below
from collshim.oneflow.optim import lr_scheduler as lr_scheduler
from collshim.oneflow.optim.optimizer import SGD, Adadelta, Adagrad, Adam, AdamW, Optimizer, RMSprop

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

__getattr__ = fall_through.names(__name__, [optim], below(REFUSED, "optim"))
