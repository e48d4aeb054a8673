"""The part of a dataset on which its groups of methods rely."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Elements:
    """The base of the groups of methods; ``Dataset`` defines these members.

    Attributes:
        element_spec: the description of the elements.
    """

    element_spec: Any
    _length: int

    def _of(
        self, elements: Callable[[], Iterable[Any]], length: int, element_spec: Callable[[], Any] | None = None
    ) -> Any:
        """Return a dataset of other elements, with this length or one of the negative numbers of ``cardinality``."""
        raise NotImplementedError

    def __iter__(self) -> Any:
        raise NotImplementedError
