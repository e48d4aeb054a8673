"""``tf.tpu``: the functions that programs call before they make a ``TPUStrategy``."""

from __future__ import annotations

from collshim.tensorflow.tpu import experimental

__all__ = ["experimental"]
