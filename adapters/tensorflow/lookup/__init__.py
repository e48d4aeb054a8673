"""``tf.lookup``: tables of keys and values. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.lookup import experimental
from collshim.tensorflow.lookup.initializers import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from collshim.tensorflow.lookup.tables import StaticHashTable, StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]

__getattr__ = saying(__name__, "use a dict")
