"""``tf.IndexedSlices``: rows of a larger tensor, such as the gradients of embeddings."""

from __future__ import annotations

from typing import Any

import torch

from collshim.arrays import as_torch
from collshim.errors import ArgumentValueError
from collshim.tensorflow.tensor_shape import TensorShape


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
    def device(self) -> str:
        """The name of the first CPU."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor; unknown if there is no ``dense_shape``."""
        return TensorShape(None if self._dense_shape is None else [int(length) for length in self._dense_shape])

    def __neg__(self) -> IndexedSlices:
        """Return the slices with negated rows."""
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> torch.Tensor:
        """Return the whole tensor: rows with the same index are added up, and other rows are zeros.

        Raises:
            ValueError: there is no ``dense_shape``, or the rows have a different dtype.
        """
        rows = as_torch(self._values)
        if self._dense_shape is None:
            raise ArgumentValueError(
                f"Tensor conversion requested for IndexedSlices for argument `value` without dense_shape: {self}"
            )
        if dtype is not None and dtype is not rows.dtype:
            wanted, found = (str(one).removeprefix("torch.") for one in (dtype, rows.dtype))
            raise ArgumentValueError(
                f"Incompatible tensor conversion requested to `dtype` {wanted} for IndexedSlices ({self}) with dtype "
                f"{found}"
            )
        whole = torch.zeros(tuple(self.shape), dtype=rows.dtype, device=rows.device)
        return whole.index_add(0, as_torch(self._indices).long(), rows)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self._indices!r}, values={self._values!r}, dense_shape={self._dense_shape!r})"
