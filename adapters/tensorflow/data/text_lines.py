"""Datasets of the names of files, and of the lines in them. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.tensorflow.data.dataset import UNKNOWN_CARDINALITY, Dataset
from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.io.files import paths_of, read_file
from collshim.tensorflow.specs import TensorSpec
from collshim.tensorflow.string_tensor import StringTensor, string_tensor


class TextLineDataset(Dataset):
    """A dataset of the lines of text files, one after another, without the ends of lines.

    Args:
        filenames: a path, several, or a dataset of paths.
        compression_type: none: None or "".
        buffer_size: has no effect, like the other arguments.

    Raises:
        ValueError: the files are compressed.
        NotFoundError: in the iteration, if a file does not exist.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        if compression_type:
            raise ArgumentValueError(
                f"compression_type is {compression_type!r}, should be None: decompress files first"
            )
        several: Any = filenames if isinstance(filenames, Dataset) else [filenames]
        super().__init__(
            lambda: (line for names in several for path in paths_of(names) for line in _lines(path)),
            UNKNOWN_CARDINALITY,
            None,
            lambda: TensorSpec((), STRING),
        )


def _lines(path: str) -> Iterator[StringTensor]:
    text: bytes = read_file(path).numpy()
    lines = text.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        yield string_tensor(line.removesuffix(b"\r"))
