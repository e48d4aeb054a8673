"""``tf.data.experimental``. Source: TensorFlow 2.21."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from collshim.tensorflow.data.iterator import Iterator
from collshim.tensorflow.data.older import (
    Counter,
    assert_cardinality,
    bucket_by_sequence_length,
    cardinality,
    choose_from_datasets,
    copy_to_device,
    dense_to_ragged_batch,
    enumerate_dataset,
    get_single_element,
    get_structure,
    group_by_window,
    ignore_errors,
    map_and_batch,
    parallel_interleave,
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)
from collshim.tensorflow.data.optional import Optional
from collshim.tensorflow.data.options import (
    AutoShardPolicy,
    AutotuneOptions,
    DistributeOptions,
    OptimizationOptions,
    ThreadingOptions,
)

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneOptions",
    "Counter",
    "DistributeOptions",
    "OptimizationOptions",
    "Optional",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "map_and_batch",
    "parallel_interleave",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Return the next element of an iterator as a ``tf.experimental.Optional``, which is empty at the end."""
    return iterator.get_next_as_optional()


__getattr__ = saying(__name__, "tf.data.Dataset has the datasets")
