"""``tf.distribute.cluster_resolver``: descriptions of the cluster."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute.cluster_resolver.base import ClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec
from collshim.tensorflow.distribute.cluster_resolver.simple import SimpleClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.slurm import SlurmClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.tpu import TPUClusterResolver
from collshim.tensorflow.distribute.cluster_resolver.union import UnionResolver

__all__ = [
    "ClusterResolver",
    "ClusterSpec",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]


_INSTEAD = "any object with cluster_spec().as_dict(), task_type and task_id will do for MultiWorkerMirroredStrategy"
__getattr__ = saying(__name__, _INSTEAD)
