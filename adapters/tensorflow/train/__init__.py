"""``tf.train``: the description of a cluster."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute.cluster_resolver import ClusterSpec

__all__ = ["ClusterSpec"]

__getattr__ = saying(__name__, "checkpoints and ClusterSpec")
