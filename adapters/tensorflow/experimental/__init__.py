"""``tf.experimental``: ``Optional``."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.data.optional import Optional

__all__ = ["Optional"]

__getattr__ = saying(__name__)
