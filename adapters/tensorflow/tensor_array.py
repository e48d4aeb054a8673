"""``tf.TensorArray``: a list of tensors that is written by index. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import OutOfRangeError, invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape


class TensorArray:
    """A list of tensors of one dtype; each write returns the array to use from then on.

    Args:
        dtype: the dtype of the tensors.
        size: the number of elements.
        dynamic_size: whether writes beyond the end add elements.
        clear_after_read: whether an element is removed when it is read; by default True.
        infer_shape: whether all tensors must have the shape of the first one.
        element_shape: the shape of the tensors; elements that are not written are zeros.

    Raises:
        ValueError: ``size`` is None.
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
        if size is None:
            raise ArgumentValueError("Size must be declared for TensorArrays when eager execution is enabled.")
        self._dtype, self._grows, self._infers = torch_dtype(dtype), bool(dynamic_size), infer_shape
        self._clears = clear_after_read is not False
        self._shape = TensorShape(element_shape)
        self._parts: list[Tensor | None] = [None] * int(size)
        self._read: set[int] = set()

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the tensors."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writes beyond the end add elements."""
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the tensors, as far as it is known."""
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of elements, int32."""
        return constant(len(self._parts))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write a tensor at an index; return this array.

        Raises:
            OutOfRangeError: there is no such index.
            InvalidArgumentError: the tensor has a different dtype.
            ValueError: the tensor has a different shape.
        """
        place = int(index)
        tensor = convert_to_tensor(value, None if hasattr(value, "dtype") else self._dtype)
        if tensor.dtype is not self._dtype:
            raise invalid_argument(
                f"TensorArray dtype is {dtype_name(self._dtype)} but Op is trying to write dtype "
                f"{dtype_name(tensor.dtype)}"
            )
        if place < 0 or (place >= len(self._parts) and not self._grows):
            raise OutOfRangeError(
                None,
                None,
                f"Tried to write to index {place} but array is not resizeable and size is: {len(self._parts)}",
            )
        if not self._shape.is_compatible_with(tensor.shape):
            raise ArgumentValueError(
                f"Incompatible shape for value ({tuple(tensor.shape)}), expected ({tuple(self._shape)})"
            )
        if self._infers:
            self._shape = tensor.shape
        self._parts += [None] * (place + 1 - len(self._parts))
        self._parts[place] = tensor
        return self

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return the tensor at an index, and remove it if ``clear_after_read``.

        Raises:
            OutOfRangeError: there is no such index.
            InvalidArgumentError: the tensor was removed by an earlier read.
        """
        place = int(index)
        if not 0 <= place < len(self._parts):
            raise OutOfRangeError(None, None, f"Tried to read from index {place} but array size is: {len(self._parts)}")
        if self._parts[place] is None and place in self._read:
            raise invalid_argument(
                f"Could not read index {place} twice because it was cleared after a previous read (perhaps try setting "
                "clear_after_read = false?)"
            )
        found = self._part(place)
        if self._clears:
            self._parts[place] = None
            self._read.add(place)
        return found

    def stack(self, name: str | None = None) -> Tensor:
        """Return all tensors, stacked."""
        return self._stacked(range(len(self._parts)))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Return the tensors at these indices, stacked."""
        return self._stacked(lengths_of(indices))

    def _stacked(self, places: Iterable[int]) -> Tensor:
        parts = [plain(self._part(place)) for place in places]
        if not parts:
            inner = list(self._shape) if self._shape.is_fully_defined() else []
            return adopt(torch.zeros([0, *inner], dtype=self._dtype))
        return adopt(torch.stack(parts))

    def concat(self, name: str | None = None) -> Tensor:
        """Return all tensors, concatenated."""
        return adopt(torch.cat([plain(self._part(place)) for place in range(len(self._parts))]))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor to the elements, in order; return this array.

        Raises:
            ValueError: there are more rows than elements, and the array must not grow.
        """
        rows = list(convert_to_tensor(value))
        if len(rows) > len(self._parts) and not self._grows:
            raise ArgumentValueError(
                f"Cannot unstack {len(rows)} tensors into a TensorArray of static size {len(self._parts)} "
            )
        return self.scatter(range(len(rows)), rows)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor at these indices; return this array."""
        for place, row in zip(lengths_of(indices), value, strict=True):
            self.write(place, row)
        return self

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Write parts of a tensor, with these lengths, to the elements in order; return this array."""
        parts = torch.split(plain(convert_to_tensor(value)), lengths_of(lengths))
        self._infers = self._infers and len(set(lengths_of(lengths))) == 1
        return self.scatter(range(len(parts)), [adopt(part) for part in parts])

    def close(self, name: str | None = None) -> None:
        """Remove all tensors."""
        self._parts.clear()

    def identity(self) -> TensorArray:
        """Return this array."""
        return self

    def _part(self, place: int) -> Tensor:
        """Return the tensor at an index; zeros if none was written."""
        found = self._parts[place]
        if found is not None:
            return found
        if not self._shape.is_fully_defined():
            raise ArgumentValueError(
                f"TensorArray: nothing was written to index {place}, and the shape of its tensors is {self._shape}"
            )
        return adopt(torch.zeros(list(self._shape), dtype=self._dtype))
