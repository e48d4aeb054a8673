"""Transforms of samples (source: MegEngine 1.13.0, ``megengine.data.transform.meta_transform``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Transform(ABC):
    """The base class of transforms: a subclass implements ``apply``."""

    def apply_batch(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the transformed samples of a batch."""
        return tuple(self.apply(input) for input in inputs)

    @abstractmethod
    def apply(self, input: Any) -> Any:
        """Return a transformed sample."""

    def __repr__(self) -> str:
        return type(self).__name__


class PseudoTransform(Transform):
    """A transform that leaves samples unchanged."""

    def apply(self, input: Any) -> Any:
        """Return the sample."""
        return input
