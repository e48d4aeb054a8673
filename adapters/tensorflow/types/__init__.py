"""``tf.types``: classes for annotations and for ``isinstance``. Source: TensorFlow 2.21."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.types import experimental

__all__ = ["experimental"]

__getattr__ = saying(__name__)
