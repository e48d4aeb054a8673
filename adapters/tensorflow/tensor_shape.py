"""``tf.TensorShape``: the lengths of a tensor's axes; None if a length, or the shape, is unknown.

A tensor's own shape is known. Source: TensorFlow 2.21, run on CPU.
"""

from __future__ import annotations

from math import prod
from typing import Any


class TensorShape(tuple[Any, ...]):
    """A tuple of lengths, equal to any list or tuple of the same lengths; ``TensorShape(None)`` has unknown rank."""

    _unknown: bool

    def __new__(cls, dims: Any) -> TensorShape:
        """Return the shape with these lengths, or with this single length."""
        lengths = dims if hasattr(dims, "__iter__") else [] if dims is None else [dims]
        made = super().__new__(cls, [None if length is None else int(length) for length in lengths])
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
            return TensorShape(None) if isinstance(index, slice) else None
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
