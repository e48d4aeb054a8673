"""``mindspore.train.callback`` (source: MindSpore 2.10.0)."""

from collshim.adapting.absent import saying
from collshim.mindspore.train.callback.callback import Callback, LambdaCallback, RunContext
from collshim.mindspore.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from collshim.mindspore.train.callback.monitors import LossMonitor, TimeMonitor
from collshim.mindspore.train.callback.plateau import EarlyStopping, History, LearningRateScheduler, ReduceLROnPlateau

__all__ = [
    "Callback",
    "CheckpointConfig",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "LossMonitor",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
]

__getattr__ = saying(__name__, "derive a class from Callback")
