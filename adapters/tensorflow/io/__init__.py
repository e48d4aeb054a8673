"""``tf.io``: files of this machine."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.io import gfile
from collshim.tensorflow.io.files import matching_files, read_file, write_file

__all__ = ["gfile", "matching_files", "read_file", "write_file"]

__getattr__ = saying(__name__, "read records and images with another library, and pass arrays to tf.data")
