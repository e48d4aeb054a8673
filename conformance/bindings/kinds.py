"""Kinds of array: how one is made from NumPy, read back, and distinguished from another.

Here and nowhere else does a binding depend on what the arrays are; to run it on a real framework, add that
framework's own kind. A package is imported when an array of its kind is first made.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.dtypes import BFLOAT16, bits_of


class Kind(Protocol):
    """What a binding needs of a kind of array."""

    name: str

    def make(self, values: NDArray[Any]) -> Any:
        """An array of these values and, where the kind permits, of the same strides."""

    def read(self, array: Any) -> NDArray[Any]:
        """The values of ``array`` in memory of their own."""
        ...

    def holds(self, value: object) -> bool:
        """Whether ``value`` is an array of this kind."""
        ...

    def address(self, array: Any) -> int:
        """Where in memory the first element of ``array`` lies."""
        ...


class NumPy:
    """``numpy.ndarray``; a NumPy scalar is none."""

    name = "numpy"

    def make(self, values: NDArray[Any]) -> Any:
        """``values`` itself: each case's arrays are fresh."""
        return values

    def read(self, array: Any) -> NDArray[Any]:
        """A copy."""
        return np.array(array, order="C")

    def holds(self, value: object) -> bool:
        """Whether ``value`` is an ``ndarray``."""
        return isinstance(value, np.ndarray)

    def address(self, array: Any) -> int:
        """Where the first element lies."""
        return int(array.__array_interface__["data"][0])


class Torch:
    """``torch.Tensor`` on the CPU."""

    name = "torch"

    def make(self, values: NDArray[Any]) -> Any:
        """A tensor over the memory of ``values``, with its strides."""
        torch = import_module("torch")
        if values.dtype == BFLOAT16:
            return torch.from_numpy(bits_of(values)).view(torch.bfloat16)
        return torch.from_numpy(values)

    def read(self, array: Any) -> NDArray[Any]:
        """A copy in NumPy's terms."""
        plain = array.detach().cpu().resolve_conj().resolve_neg()
        if plain.dtype is import_module("torch").bfloat16:
            return np.array(plain.view(import_module("torch").uint16).numpy(), order="C").view(BFLOAT16)
        return np.array(plain.numpy(), order="C")

    def holds(self, value: object) -> bool:
        """Whether ``value`` is a tensor; nothing is one before torch is imported."""
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.Tensor)

    def address(self, array: Any) -> int:
        """Where the first element lies."""
        return int(array.data_ptr())


KINDS: dict[str, Kind] = {kind.name: kind for kind in (Torch(), NumPy())}


def kind_of(value: object) -> Kind | None:
    """The kind of ``value``, or None where it is no array."""
    return next((kind for kind in KINDS.values() if kind.holds(value)), None)
