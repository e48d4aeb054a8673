"""``tf.TensorShape``: the lengths of a tensor's axes; None if a length, or the shape, is unknown.

A tensor's own shape is known. Source: TensorFlow 2.21, run on CPU.
"""

from __future__ import annotations

from math import prod
from operator import index as index_of
from typing import Any


class TensorShape(tuple[Any, ...]):
    """A tuple of lengths, equal to any list or tuple of the same lengths; ``TensorShape(None)`` has unknown rank."""

    _unknown: bool

    def __new__(cls, dims: Any) -> TensorShape:
        """Return the shape with these lengths, or with this single length."""
        lengths = dims if hasattr(dims, "__iter__") else [] if dims is None else [dims]
        made = super().__new__(cls, [_length(length) for length in lengths])
        made._unknown = dims is None or bool(getattr(dims, "_unknown", False))
        return made

    @property
    def rank(self) -> int | None:
        """The number of axes."""
        return None if self._unknown else len(self)

    ndims = rank

    @property
    def dims(self) -> list[int | None] | None:
        """The lengths, as ints; in TensorFlow, each is an object of a class."""
        return None if self._unknown else list(self)

    def as_list(self) -> list[int | None]:
        """Return the lengths in a list; raise ValueError if the rank is unknown."""
        if self._unknown:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self)

    def num_elements(self) -> int | None:
        """Return the number of elements of a tensor with this shape; None if it is not known."""
        return prod(self) if self.is_fully_defined() else None

    numel = num_elements

    def is_fully_defined(self) -> bool:
        """Return whether every length is known."""
        return not self._unknown and None not in self

    def concatenate(self, other: Any) -> TensorShape:
        """Return these axes followed by those of ``other``."""
        behind = TensorShape(other)
        return TensorShape(None if self._unknown or behind._unknown else (*self, *behind))

    __add__ = concatenate

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __bool__(self) -> bool:
        """Return whether the rank is known: a scalar's shape is true."""
        return not self._unknown

    def with_rank(self, rank: int | None) -> TensorShape:
        """Return the shape, with ``rank`` axes if the rank is unknown; raise ValueError if it has a different rank."""
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._unknown and rank is not None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return the shape; raise ValueError if it has fewer axes."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Return the shape; raise ValueError if it has more axes."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int | None) -> None:
        """Raise ValueError if the shape has a different rank."""
        if None not in (self.rank, rank) and self.rank != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ValueError if the two shapes have different ranks."""
        shape = TensorShape(other)
        if None not in (self.rank, shape.rank) and self.rank != shape.rank:
            raise ValueError(f"Shapes {self} and {shape} must have the same rank")

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError unless ``is_fully_defined``."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether every tensor of this shape also has the other one, which must be a ``TensorShape``."""
        if not isinstance(other, TensorShape):
            return False
        if other._unknown:
            return True
        return self.rank == other.rank and all(
            another is None or one == another for one, another in zip(self, other, strict=True)
        )

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Return the shape with the lengths that both have, None for the others; unknown if the ranks differ."""
        shape = TensorShape(other)
        if self.rank is None or self.rank != shape.rank:
            return TensorShape(None)
        return TensorShape([one if one == another else None for one, another in zip(self, shape, strict=True)])

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a tensor may have both shapes: None is any length, and an unknown rank any shape."""
        lengths = TensorShape(other)
        if self._unknown or lengths._unknown:
            return True
        return len(lengths) == len(self) and all(
            one is None or another is None or one == another for one, another in zip(self, lengths, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless ``is_compatible_with``."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape with the known lengths of both; raise ValueError unless ``is_compatible_with``."""
        lengths = TensorShape(other)
        self.assert_is_compatible_with(lengths)
        if self._unknown or lengths._unknown:
            return lengths if self._unknown else self
        return TensorShape([another if one is None else one for one, another in zip(self, lengths, strict=True)])

    def __getitem__(self, index: Any) -> Any:
        if self._unknown:
            return _unknown_part(index) if isinstance(index, slice) else None
        found = super().__getitem__(index)
        return TensorShape(found) if isinstance(index, slice) else found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | tuple):
            return False
        return tuple(self) == tuple(other) and self._unknown == bool(getattr(other, "_unknown", False))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        return "<unknown>" if self._unknown else str(tuple(self))

    def __repr__(self) -> str:
        return f"TensorShape({None if self._unknown else list(self)})"


def _length(value: Any) -> int | None:
    """Return the length of an axis as an int, or None.

    Raises:
        TypeError: ``value`` is not an integer.
        ValueError: it is negative.
    """
    if value is None:
        return None
    try:
        found = index_of(value)
    except TypeError as error:
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got value {value!r} with type "
            f"{type(value)!r}"
        ) from error
    if found < 0:
        raise ValueError(f"Dimension {found} must be >= 0")
    return found


def _unknown_part(index: slice) -> TensorShape:
    """Return a slice of an unknown shape: as many unknown lengths as the slice has for certain."""
    start, stop = index.start or 0, index.stop
    if stop is None or start < 0 or stop < 0 or index.step not in (None, 1):
        return TensorShape(None)
    return TensorShape([None] * max(stop - start, 0))
