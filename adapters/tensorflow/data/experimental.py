"""``tf.data.experimental``. Source: TensorFlow 2.21."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from collshim.tensorflow.data.iterator import Iterator
from collshim.tensorflow.data.optional import Optional
from collshim.tensorflow.data.options import AutoShardPolicy, DistributeOptions

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "DistributeOptions",
    "Optional",
    "get_next_as_optional",
]


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Return the next element of an iterator as a ``tf.experimental.Optional``, which is empty at the end."""
    return iterator.get_next_as_optional()


__getattr__ = saying(__name__, "tf.data.Dataset has the datasets")
