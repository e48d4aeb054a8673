"""``tf.RaggedTensor`` with one ragged axis, and ``tf.SparseTensor``, as far as datasets and strategies use them.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.string_tensor import StringTensor, string_tensor
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape


class RaggedRow(Tensor):
    """A row of a ragged tensor; a dataset can batch it with rows of different lengths."""


def _elementwise(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def method(self: RaggedTensor, *others: Any) -> Any:
        values = []
        for other in others:
            if isinstance(other, RaggedTensor) and other._lengths != self._lengths:
                raise invalid_argument(f"the rows have the lengths {self._lengths} and {other._lengths}")
            values.append(other._values if isinstance(other, RaggedTensor) else other)
        return RaggedTensor(compute(self._values, *values), self._lengths)

    method.__name__, method.__doc__ = name, f"Return ``{name}`` of the elements; rows keep their lengths."
    return method


def _reflected(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def method(self: RaggedTensor, other: Any) -> Any:
        return RaggedTensor(compute(other, self._values), self._lengths)

    method.__name__, method.__doc__ = f"__r{name.strip('_')}__", f"Return ``{name}`` of a number and the elements."
    return method


class RaggedTensor:
    """Rows of different lengths: the values of all rows in one tensor, and the rows' lengths."""

    ragged_rank = 1

    def __init__(self, values: Any, lengths: Sequence[int]) -> None:
        self._values, self._lengths = values, list(lengths)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return the rows with these lengths.

        Raises:
            ValueError: the lengths are not integers.
            InvalidArgumentError: the lengths do not add up to the number of values, or one is negative.
        """
        found, given = convert_to_tensor(values), convert_to_tensor(row_lengths)
        if given.dtype not in (torch.int32, torch.int64):
            raise ArgumentValueError("row_lengths must have dtype int32 or int64")
        lengths: list[int] = given.tolist()
        if min(lengths, default=0) < 0 or sum(lengths) != found.shape[0]:
            raise invalid_argument(
                f"Arguments do not form a valid RaggedTensor: row_lengths are {lengths}, should be 0 or more, "
                f"and add up to the {found.shape[0]} values"
            )
        return cls(found, lengths)

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> Any:
        """Return the rows that begin and end at these positions.

        Raises:
            ValueError: there are no positions.
            InvalidArgumentError: the positions do not increase from 0 to the number of values.
        """
        splits = convert_to_tensor(row_splits).tolist()
        if not splits:
            raise ArgumentValueError("row_splits tensor may not be empty")
        if splits[0] != 0:
            raise invalid_argument(
                f"Arguments to from_row_splits do not form a valid RaggedTensor: row_splits are {splits}, should begin "
                "with 0"
            )
        lengths = [end - start for start, end in pairwise(splits)]
        return cls.from_row_lengths(values, lengths)

    @property
    def values(self) -> Any:
        """The values of all rows."""
        return self._values

    flat_values = values

    @property
    def row_splits(self) -> Tensor:
        """The positions at which rows begin and end, int64."""
        return adopt(torch.tensor([0, *accumulate(self._lengths)]))

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Tensor:
        """Return the lengths of the rows, int64; ``axis`` is the ragged one, 1."""
        return adopt(torch.tensor(self._lengths, dtype=torch.int64))

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """Return the number of rows, by default int64."""
        dtype = torch.int64 if out_type is None else torch_dtype(out_type)
        return adopt(torch.tensor(len(self._lengths), dtype=dtype))

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes; None for the ragged axis."""
        return TensorShape([len(self._lengths), None, *self._values.shape[1:]])

    def dim(self) -> int:
        """Return the number of axes."""
        return int(self._values.dim()) + 1

    def to_list(self) -> list[Any]:
        """Return the values as nested lists."""
        return [row.tolist() for row in self._rows()]

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
        """Return a dense tensor, with the rows padded to the length of the longest, or cut and padded to ``shape``."""
        lengths = [len(self._lengths), max(self._lengths, default=0), *self._values.shape[1:]]
        for axis, length in enumerate([] if shape is None else TensorShape(shape)):
            lengths[axis] = lengths[axis] if length is None else length
        if isinstance(self._values, StringTensor):
            return _padded_strings(self._rows(), lengths, default_value)
        whole = torch.full(lengths, 0 if default_value is None else default_value, dtype=self.dtype)
        for row, part in zip(whole, self._rows(), strict=False):
            row[: len(part)] = part[: len(row)]
        return adopt(whole)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Return the values as a sparse tensor."""
        places = [[row, column] for row, length in enumerate(self._lengths) for column in range(length)]
        shape = [len(self._lengths), max(self._lengths, default=0)]
        return SparseTensor(torch.tensor(places, dtype=torch.int64).reshape(-1, 2), self._values, shape)

    def __getitem__(self, key: Any) -> Any:
        rows = self._rows()
        if not isinstance(key, slice):
            row = rows[int(key)]
            return row if isinstance(row, StringTensor) else row.as_subclass(RaggedRow)
        return ragged(rows[key], self._values)

    __add__, __radd__ = _elementwise("__add__"), _reflected("__add__")
    __sub__, __rsub__ = _elementwise("__sub__"), _reflected("__sub__")
    __mul__, __rmul__ = _elementwise("__mul__"), _reflected("__mul__")
    __truediv__, __rtruediv__ = _elementwise("__truediv__"), _reflected("__truediv__")
    __floordiv__, __rfloordiv__ = _elementwise("__floordiv__"), _reflected("__floordiv__")
    __mod__, __rmod__ = _elementwise("__mod__"), _reflected("__mod__")
    __pow__, __rpow__ = _elementwise("__pow__"), _reflected("__pow__")
    __neg__ = _elementwise("__neg__")
    __abs__ = _elementwise("__abs__")
    __lt__ = _elementwise("__lt__")
    __le__ = _elementwise("__le__")
    __gt__ = _elementwise("__gt__")
    __ge__ = _elementwise("__ge__")

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"

    def _rows(self) -> list[Any]:
        if isinstance(self._values, StringTensor):
            return [
                self._values[end - length : end] for end, length in zip(self.row_splits[1:], self._lengths, strict=True)
            ]
        return list(torch.split(plain(self._values), self._lengths))

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """Return the shape of ``to_tensor()``, or its length along ``axis``; by default int64."""
        whole = [len(self._lengths), max(self._lengths, default=0), *self._values.shape[1:]]
        dtype = torch.int64 if out_type is None else torch_dtype(out_type)
        return adopt(torch.tensor(whole if axis is None else whole[axis], dtype=dtype))


class SparseTensor:
    """The positions and values of a tensor's nonzero elements, in order, and the tensor's shape.

    Raises:
        ValueError: the numbers of positions, values and axes do not fit together.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = adopt(plain(convert_to_tensor(indices)).long())
        self._values, self._shape = convert_to_tensor(values), [int(length) for length in dense_shape]
        if self._indices.dim() != 2:
            raise ArgumentValueError(f"Shape {self._indices.shape} must have rank 2")
        wanted = [self._values.shape[0], len(self._shape)]
        if list(self._indices.shape) != wanted:
            raise ArgumentValueError(
                f"Dimensions {list(self._indices.shape)} and {wanted} are not compatible: indices should have one "
                "row for each value, and one number for each axis"
            )

    @property
    def indices(self) -> Tensor:
        """The positions, int64 ``(n, axes)``."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The values ``(n,)``."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape, int64."""
        return adopt(torch.tensor(self._shape, dtype=torch.int64))

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return TensorShape(self._shape)

    def get_shape(self) -> TensorShape:
        """Return the shape."""
        return self.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self._values.dtype

    def dim(self) -> int:
        """Return the number of axes."""
        return len(self._shape)

    def __getitem__(self, key: Any) -> SparseTensor:
        """Return a row, or the rows of a slice."""
        places, values = plain(self._indices), plain(self._values)
        rows = range(self._shape[0])[key] if isinstance(key, slice) else range(key, key + 1)
        kept = (places[:, 0] >= rows.start) & (places[:, 0] < rows.stop)
        found = places[kept]
        if not isinstance(key, slice):
            return SparseTensor(found[:, 1:], values[kept], self._shape[1:])
        moved = torch.cat([found[:, :1] - rows.start, found[:, 1:]], 1)
        return SparseTensor(moved, values[kept], [len(rows), *self._shape[1:]])

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{name}=tf.Tensor({part}, shape={tuple(part.shape)}, dtype={dtype_name(part.dtype)})"
            for name, part in (("indices", self._indices), ("values", self._values), ("dense_shape", self.dense_shape))
        )
        return f"SparseTensor({parts})"


def ragged(rows: Sequence[torch.Tensor], like: torch.Tensor) -> RaggedTensor:
    """Return a ragged tensor of these rows; if there are none, with the dtype of ``like``."""
    if isinstance(like, StringTensor):
        words: Any = string_tensor([word for row in rows for word in row.tolist()])
        return RaggedTensor(words, [len(row) for row in rows])
    values = torch.cat([plain(row) for row in rows]) if rows else plain(like)[:0]
    return RaggedTensor(adopt(values), [len(row) for row in rows])


def _padded_strings(rows: Sequence[StringTensor], lengths: Sequence[int], filling: Any) -> StringTensor:
    whole = np.full(tuple(lengths), string_tensor("" if filling is None else filling).numpy(), object)
    for place, part in zip(range(len(whole)), rows, strict=False):
        words = part.numpy()[: lengths[1]]
        whole[place, : len(words)] = words
    return StringTensor(whole)


def as_component(value: Any) -> Any:
    """Return ragged and sparse tensors unchanged, and convert anything else to a tensor."""
    return value if isinstance(value, RaggedTensor | SparseTensor) else convert_to_tensor(value)


def stacked(*parts: Any) -> Any:
    """Stack tensors along a new axis 0; the result is ragged for rows of ragged tensors, and sparse for sparse ones."""
    if isinstance(parts[0], StringTensor):
        return string_tensor([part.numpy() for part in parts])
    if isinstance(parts[0], RaggedRow):
        return ragged(parts, parts[0])
    if not isinstance(parts[0], SparseTensor):
        return adopt(torch.stack([plain(part) for part in parts]))
    places = [
        torch.cat([torch.full((len(part.indices), 1), row), plain(part.indices)], 1) for row, part in enumerate(parts)
    ]
    longest = [max(lengths) for lengths in zip(*[part.shape for part in parts], strict=True)]
    values = torch.cat([plain(part.values) for part in parts])
    return SparseTensor(torch.cat(places), values, [len(parts), *longest])
