"""``tf.experimental.Optional``: a value that may be missing. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from collshim.tensorflow.constants import constant
from collshim.tensorflow.data.structure import map_components
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.specs import spec_of
from collshim.tensorflow.tensor import Tensor

_NOTHING = object()


class Optional:
    """A value, or no value."""

    def __init__(self, value: Any = _NOTHING, element_spec: Any = None) -> None:
        self._value, self._spec = value, element_spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Return an optional with a value; numbers become tensors."""
        return Optional(map_components(lambda part: part if hasattr(part, "values") else constant(part), value))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """Return an optional without a value."""
        return Optional(element_spec=element_spec)

    def has_value(self, name: str | None = None) -> Tensor:
        """Return whether there is a value."""
        return constant(self._value is not _NOTHING)

    def get_value(self, name: str | None = None) -> Any:
        """Return the value.

        Raises:
            InvalidArgumentError: there is no value.
        """
        if self._value is _NOTHING:
            raise invalid_argument("The given optional does not have a value.")
        return self._value

    @property
    def element_spec(self) -> Any:
        """The description of the value, as passed to ``empty``."""
        return self._spec if self._value is _NOTHING else map_components(spec_of, self._value)


def next_of(elements: Iterator[Any]) -> Optional:
    """Return the next element of an iterator, or an optional without a value at its end."""
    for element in elements:
        return Optional(element)
    return Optional()
