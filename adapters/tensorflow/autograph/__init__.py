"""``tf.autograph``: hints to a compiler, which have no effect: nothing is compiled. Source: TensorFlow 2.21."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.autograph import experimental

__all__ = ["experimental", "set_verbosity"]


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Do nothing: functions are not converted."""


__getattr__ = saying(__name__)
