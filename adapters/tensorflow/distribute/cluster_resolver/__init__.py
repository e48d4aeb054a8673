"""``tf.distribute.cluster_resolver``: what the environment says of the cluster."""

from __future__ import annotations

from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec
from collshim.tensorflow.distribute.cluster_resolver.simple import SimpleClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.tpu import TPUClusterResolver

__all__ = ["ClusterSpec", "SimpleClusterResolver", "TFConfigClusterResolver", "TPUClusterResolver"]


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"collshim.tensorflow.distribute.cluster_resolver has no {name!r}; it covers {', '.join(sorted(__all__))}. Any "
        "object with cluster_spec().as_dict(), task_type and task_id will do for MultiWorkerMirroredStrategy"
    )
