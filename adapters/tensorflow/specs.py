"""``tf.TensorSpec`` and so on: descriptions of tensors by shape and dtype. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow.composites import RaggedRow, RaggedTensor, SparseTensor
from collshim.tensorflow.constants import is_of_strings, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.data_types import STRING, DType
from collshim.tensorflow.tensor_shape import TensorShape


def _dtype_text(dtype: Any) -> str:
    return repr(dtype if dtype is STRING else DType(dtype))


class TypeSpec:
    """A description of values."""


class TensorSpec(TypeSpec):
    """A description of tensors: their shape, in which None is any length, and their dtype."""

    def __init__(self, shape: Any, dtype: Any = torch.float32, name: str | None = None) -> None:
        self._shape, self._name = TensorShape(shape), name
        self._dtype: Any = STRING if is_of_strings(dtype) else torch_dtype(dtype)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Return the description of a tensor."""
        found = convert_to_tensor(tensor)
        return cls(found.shape, found.dtype, name)

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    def reshaped(self, shape: Any) -> TensorSpec:
        """Return the description of tensors with this shape."""
        return TensorSpec(shape, self._dtype)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Return whether a tensor, or the tensors of another description, may match this description."""
        other = spec_or_tensor if isinstance(spec_or_tensor, TensorSpec) else TensorSpec.from_tensor(spec_or_tensor)
        return self._dtype is other._dtype and self._shape.is_compatible_with(other._shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={_dtype_text(self._dtype)}, name={self._name!r})"


class RaggedTensorSpec(TensorSpec):
    """A description of ragged tensors, or of their rows (``ragged_rank`` 0).

    Raises:
        ValueError: ``ragged_rank`` is not known, or not below the number of axes.
    """

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = torch.float32,
        ragged_rank: Any = None,
        row_splits_dtype: Any = torch.int64,
    ) -> None:
        super().__init__(shape, dtype)
        rank = self._shape.rank
        if rank is None and ragged_rank is None:
            raise ArgumentValueError("Must specify ragged_rank or a shape with a known rank.")
        if rank is not None and ragged_rank is not None and ragged_rank >= max(rank, 1):
            raise ArgumentValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank}).")
        self._row_splits_dtype = torch_dtype(row_splits_dtype)
        self._ragged_rank = (self._shape.rank or 1) - 1 if ragged_rank is None else int(ragged_rank)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return self._ragged_rank

    def reshaped(self, shape: Any) -> TensorSpec:
        """Return the description of ragged tensors with this shape, such as batches or rows."""
        rank = self._ragged_rank + len(shape) - (self._shape.rank or 0)
        return RaggedTensorSpec(shape, self._dtype, rank, self._row_splits_dtype)

    def __repr__(self) -> str:
        kinds = _dtype_text(self._dtype), DType(self._row_splits_dtype)
        return f"RaggedTensorSpec({self._shape!r}, {kinds[0]}, {self._ragged_rank}, {kinds[1]!r})"


class SparseTensorSpec(TensorSpec):
    """A description of sparse tensors."""

    def __init__(self, shape: Any = None, dtype: Any = torch.float32) -> None:
        super().__init__(shape, dtype)

    def reshaped(self, shape: Any) -> TensorSpec:
        """Return the description of sparse tensors with this shape."""
        return SparseTensorSpec(shape, self._dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self._shape!r}, {DType(self._dtype)!r})"


class PerReplicaSpec(TypeSpec):
    """A description of distributed values, with one description for each replica of this process."""

    def __init__(self, *value_specs: Any) -> None:
        self._value_specs = value_specs

    @property
    def value_specs(self) -> tuple[Any, ...]:
        """The description of each replica's value."""
        return self._value_specs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerReplicaSpec) and self._value_specs == other._value_specs

    def __hash__(self) -> int:
        return hash(self._value_specs)

    def __repr__(self) -> str:
        return f"PerReplicaSpec{self._value_specs!r}"


class _OfElements(TypeSpec):
    """A description of a source of elements, by the description of the elements."""

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def element_spec(self) -> Any:
        """The description of the elements."""
        return self._element_spec

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._element_spec!r})"


class IteratorSpec(_OfElements):
    """A description of iterators, for the ``input_signature`` of a ``tf.function``."""


class DatasetSpec(_OfElements):
    """A description of datasets, for the ``input_signature`` of a ``tf.function``."""


def type_spec_from_value(value: Any) -> Any:
    """Return the description of a tensor, a number, or distributed values."""
    return spec_of(value)


def spec_of(value: Any) -> Any:
    """Return the description of a tensor, or of distributed values."""
    if hasattr(value, "_as_tensor"):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, RaggedTensor | RaggedRow):
        return RaggedTensorSpec(value.shape, value.dtype, value.dim() - 1)
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(value.shape, value.dtype)
    values = getattr(value, "values", None)
    if isinstance(values, tuple) and not isinstance(value, torch.Tensor):
        return PerReplicaSpec(*map(spec_of, values))
    return TensorSpec.from_tensor(value)
