"""``tf.lookup.experimental``: a table that can be changed."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.lookup.tables import MutableHashTable

__all__ = ["MutableHashTable"]

__getattr__ = saying(__name__, "use a dict")
