"""``tf.TensorArray``: a list of tensors that is written by place. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import OutOfRangeError
from collshim.tensorflow.tensor import Tensor, adopt, plain


class TensorArray:
    """A list of tensors of one dtype; each write returns the array to go on with.

    Args:
        dtype: the dtype of its tensors.
        size: the number of places.
        dynamic_size: whether writes beyond them add places.
        element_shape: the shape of its tensors, for those that are not written: they are zeros.
        clear_after_read: accepted, like the others; without effect.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self._dtype, self._grows, self._shape = torch_dtype(dtype), bool(dynamic_size), element_shape
        self._parts: list[Tensor | None] = [None] * int(0 if size is None else size)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its tensors."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writes add places."""
        return self._grows

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of places, int32."""
        return constant(len(self._parts))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Put a tensor at a place; return this array.

        Raises:
            OutOfRangeError: there is no such place.
            ValueError: the tensor has another dtype.
        """
        place = int(index)
        tensor = convert_to_tensor(value, None if hasattr(value, "dtype") else self._dtype)
        if tensor.dtype is not self._dtype:
            raise ArgumentValueError(f"TensorArray dtype is {self._dtype} but op is trying to write {tensor.dtype}.")
        if place < 0 or (place >= len(self._parts) and not self._grows):
            raise OutOfRangeError(
                None,
                None,
                f"Tried to write to index {place} but array is not resizeable and size is: {len(self._parts)}",
            )
        self._parts += [None] * (place + 1 - len(self._parts))
        self._parts[place] = tensor
        return self

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return the tensor at a place.

        Raises:
            OutOfRangeError: there is no such place.
        """
        place = int(index)
        if not 0 <= place < len(self._parts):
            raise OutOfRangeError(None, None, f"Tried to read from index {place} but array size is: {len(self._parts)}")
        return self._filled()[place]

    def stack(self, name: str | None = None) -> Tensor:
        """Return all tensors, stacked."""
        if not self._parts:
            return adopt(torch.zeros([0, *(self._shape or ())], dtype=self._dtype))
        return adopt(torch.stack([plain(part) for part in self._filled()]))

    def concat(self, name: str | None = None) -> Tensor:
        """Return all tensors, one after the other."""
        return adopt(torch.cat([plain(part) for part in self._filled()]))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the tensors at these places, stacked."""
        return adopt(torch.stack([plain(self.read(index)) for index in convert_to_tensor(indices).tolist()]))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Put the rows of a tensor at the places; return this array."""
        self._parts = list(convert_to_tensor(value))
        return self

    def identity(self) -> TensorArray:
        """Return this array."""
        return self

    def _filled(self) -> list[Tensor]:
        written = next((part for part in self._parts if part is not None), None)
        if written is None and self._shape is None:
            raise ArgumentValueError("TensorArray: no tensor was written, and there is no element_shape")
        shape = self._shape if written is None else written.shape
        empty = adopt(torch.zeros(list(shape), dtype=self._dtype))
        return [empty if part is None else part for part in self._parts]
