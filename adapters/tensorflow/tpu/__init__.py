"""``tf.tpu``: the functions that programs call before they make a ``TPUStrategy``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.tpu import experimental

__all__ = ["experimental"]


__getattr__ = saying(__name__, "there are no TPUs here")
