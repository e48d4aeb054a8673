"""``tf.linalg``."""

from __future__ import annotations

from collshim.tensorflow.arithmetic import l2_normalize, matmul, norm
from collshim.tensorflow.arrays import eye

__all__ = ["eye", "l2_normalize", "matmul", "norm"]
