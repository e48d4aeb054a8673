"""``tf.train``: the description of a cluster."""

from __future__ import annotations

from collshim.tensorflow.distribute.cluster_resolver import ClusterSpec

__all__ = ["ClusterSpec"]
