"""``mindspore.nn.Embedding`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_int
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.common.initializer import initializer
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell

__all__ = ["Embedding"]


class Embedding(Cell):
    """Looks up rows of ``embedding_table`` by index: ``(...)`` becomes ``(..., embedding_size)``.

    Args:
        vocab_size: the number of rows.
        embedding_size: the length of a row.
        use_one_hot: has no effect on the result.
        embedding_table: an initializer of the table, its name, or a tensor.
        dtype: has no effect, as in MindSpore: the table is float32.
        padding_idx: the index of a row that is zero at first.

    Raises:
        TypeError: a number is not an int, or ``use_one_hot`` not a bool.
        ValueError: ``padding_idx`` is out of range.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: Any = torch.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = check_int(vocab_size, "vocab_size", self.cls_name)
        self.embedding_size = check_int(embedding_size, "embedding_size", self.cls_name)
        self.use_one_hot = check_bool(use_one_hot, "use_one_hot", self.cls_name)
        self.dtype, self.padding_idx = dtype, padding_idx
        table = initializer(embedding_table, [vocab_size, embedding_size])
        if padding_idx is not None:
            if not 0 <= check_int(padding_idx, "padding_idx", self.cls_name) < vocab_size:
                text = f"must be in range of [0, {vocab_size}), but got {padding_idx}"
                refuse(ValueError, f"For 'Embedding', the 'padding_idx' {text}")
            table[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Any) -> Any:
        """Return the rows."""
        return functional.embedding(ids.long(), self.embedding_table)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        sizes = f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}"
        dtype = dtype_name(self.dtype)
        return f"{sizes}, embedding_table={self.embedding_table}, dtype={dtype}, padding_idx={self.padding_idx}"
