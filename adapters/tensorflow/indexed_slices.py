"""``tf.IndexedSlices``: rows of a larger tensor, the form of embeddings' gradients."""

from __future__ import annotations

from typing import Any

import torch


class IndexedSlices:
    """Rows of a tensor of shape ``dense_shape``: ``values[i]`` is row ``indices[i]``; an index may occur several times.

    Attributes:
        values: an array ``(n, ...)``.
        indices: an integer array ``(n,)``.
        dense_shape: an integer array, the shape of the whole tensor; or None.
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """The index of each row."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the whole tensor, or None."""
        return self._dense_shape

    @property
    def dtype(self) -> Any:
        """The dtype of the rows."""
        return self._values.dtype

    @property
    def shape(self) -> torch.Size | None:
        """The shape of the whole tensor (in TensorFlow a TensorShape); None without ``dense_shape``."""
        return None if self._dense_shape is None else torch.Size(int(length) for length in self._dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self._indices!r}, values={self._values!r}, dense_shape={self._dense_shape!r})"
