"""Kinds of array: how to make one from NumPy, read it back, and distinguish it from another kind.

Bindings depend on the kind of arrays only here; to run them on a real framework, add that framework's own kind. A
package is imported when an array of its kind is first made.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.dtypes import BFLOAT16, bits_of


class Kind(Protocol):
    """The operations on a kind of array that a binding needs."""

    name: str

    def make(self, values: NDArray[Any]) -> Any:
        """Make an array of these values and, if the kind permits, with the same strides."""

    def read(self, array: Any) -> NDArray[Any]:
        """Copy the values of ``array`` into separate memory."""
        ...

    def holds(self, value: object) -> bool:
        """Return whether ``value`` is an array of this kind."""
        ...

    def address(self, array: Any) -> int:
        """Return the address of the first element of ``array``."""
        ...


class NumPy:
    """``numpy.ndarray``, without NumPy's scalars."""

    name = "numpy"

    def make(self, values: NDArray[Any]) -> Any:
        """Return ``values`` itself, because each case's arrays are fresh."""
        return values

    def read(self, array: Any) -> NDArray[Any]:
        """Copy the array."""
        return np.array(array, order="C")

    def holds(self, value: object) -> bool:
        """Return whether ``value`` is an ``ndarray``."""
        return isinstance(value, np.ndarray)

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(array.__array_interface__["data"][0])


class Torch:
    """``torch.Tensor`` on the CPU."""

    name = "torch"

    def make(self, values: NDArray[Any]) -> Any:
        """Make a tensor over the memory of ``values``, with its strides."""
        torch = import_module("torch")
        if values.dtype == BFLOAT16:
            return torch.from_numpy(bits_of(values)).view(torch.bfloat16)
        return torch.from_numpy(values)

    def read(self, array: Any) -> NDArray[Any]:
        """Copy the tensor into a NumPy array."""
        plain = array.detach().cpu().resolve_conj().resolve_neg()
        if plain.dtype is import_module("torch").bfloat16:
            return np.array(plain.view(import_module("torch").uint16).numpy(), order="C").view(BFLOAT16)
        return np.array(plain.numpy(), order="C")

    def holds(self, value: object) -> bool:
        """Return whether ``value`` is a tensor; False if torch has not been imported."""
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.Tensor)

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(array.data_ptr())


KINDS: dict[str, Kind] = {kind.name: kind for kind in (Torch(), NumPy())}


def kind_of(value: object) -> Kind | None:
    """Return the kind of ``value``, or None if it is not an array."""
    return next((kind for kind in KINDS.values() if kind.holds(value)), None)
