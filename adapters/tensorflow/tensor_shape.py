"""``tf.TensorShape``: the lengths of a tensor's axes, all of them known. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from math import prod
from typing import Any


class TensorShape(tuple[int, ...]):
    """A tuple of lengths, equal to a list or tuple of the same."""

    def __new__(cls, dims: Any) -> TensorShape:
        """The shape with these lengths, or with this one."""
        lengths = dims if hasattr(dims, "__iter__") else [dims]
        return super().__new__(cls, [int(length) for length in lengths])

    @property
    def rank(self) -> int:
        """How many axes there are."""
        return len(self)

    ndims = rank

    @property
    def dims(self) -> list[int]:
        """The lengths; TensorFlow has a class for each of them."""
        return list(self)

    def as_list(self) -> list[int]:
        """The lengths in a list."""
        return list(self)

    def num_elements(self) -> int:
        """How many elements a tensor of this shape has."""
        return prod(self)

    numel = num_elements

    def is_fully_defined(self) -> bool:
        """True: no length is unknown here."""
        return True

    def concatenate(self, other: Any) -> TensorShape:
        """These axes and then the other's."""
        return TensorShape((*self, *TensorShape(other)))

    __add__ = concatenate

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the other has the same axes; its None may be any length, or any shape."""
        if other is None:
            return True
        lengths = tuple(other)
        return len(lengths) == len(self) and all(b in (None, a) for a, b in zip(self, lengths, strict=True))

    def assert_is_compatible_with(self, other: Any) -> None:
        """ValueError unless ``is_compatible_with``."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return TensorShape(found) if isinstance(index, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, list | tuple) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        return str(tuple(self))

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"
