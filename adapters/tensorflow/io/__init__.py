"""``tf.io``: files of this machine."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.io import gfile

__all__ = ["gfile"]

__getattr__ = saying(__name__, "read records and images with another library, and pass arrays to tf.data")
