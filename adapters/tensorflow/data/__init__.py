"""``tf.data``: datasets in memory for training loops. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.data import experimental
from collshim.tensorflow.data.dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from collshim.tensorflow.data.iterator import Iterator, NumpyIterator
from collshim.tensorflow.data.options import Options, ThreadingOptions
from collshim.tensorflow.data.text_lines import TextLineDataset
from collshim.tensorflow.specs import DatasetSpec, IteratorSpec

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]

_INSTEAD = "read files with Python, and pass arrays to Dataset.from_tensor_slices, or a function to from_generator"
__getattr__ = saying(__name__, _INSTEAD)
