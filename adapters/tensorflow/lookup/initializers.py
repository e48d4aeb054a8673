"""The keys and values with which a table begins. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.dtypes import as_dtype
from collshim.tensorflow.strings import to_number


class KeyValueTensorInitializer:
    """Keys and values in two tensors of one length."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self.keys = convert_to_tensor(keys, key_dtype)
        self.values = convert_to_tensor(values, value_dtype)

    @property
    def key_dtype(self) -> Any:
        """The dtype of the keys."""
        return self.keys.dtype

    @property
    def value_dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    def initialize(self, table: Any) -> None:
        """Put the keys and values into a table."""
        table._fill(*(np.asarray(part).tolist() for part in (self.keys, self.values)))


class TextFileIndex:
    """The part of a line that is a key or a value: the line, its number, or the field of this index."""

    WHOLE_LINE, LINE_NUMBER = -2, -1


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values from the lines of a file."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        lines = Path(_path(filename)).read_bytes().splitlines()[:vocab_size]
        parts = [
            _column(lines, index, as_dtype(dtype), delimiter.encode(), offset)
            for index, dtype, offset in ((key_index, key_dtype, 0), (value_index, value_dtype, value_index_offset))
        ]
        super().__init__(*parts)


def _column(lines: list[bytes], index: int, dtype: Any, delimiter: bytes, offset: int) -> Any:
    if index == TextFileIndex.LINE_NUMBER:
        return constant(range(offset, offset + len(lines)), torch.int64)
    texts = lines if index == TextFileIndex.WHOLE_LINE else [line.split(delimiter)[index] for line in lines]
    return constant(texts, "string") if dtype.name == "string" else to_number(texts, dtype)


def _path(filename: Any) -> str:
    found: str | bytes = filename.numpy() if hasattr(filename, "numpy") else filename
    return found.decode() if isinstance(found, bytes) else str(found)
