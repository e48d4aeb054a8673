"""``tf.data.experimental``. Source: TensorFlow 2.21."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from collshim.tensorflow.data.options import AutoShardPolicy, DistributeOptions

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "AutoShardPolicy", "DistributeOptions"]

__getattr__ = saying(__name__, "tf.data.Dataset has the datasets")
