"""A real framework's own arrays, as the kind that bindings call a tensor. Its name is torch, as in every ``Case``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.bindings.kinds import Kind, Torch
from collshim.conformance.dtypes import computable, name_of, typed
from collshim.conformance.recorder.dialects import dialect
from collshim.conformance.recorder.trees import Arrays


class Native:
    """A framework's arrays, through the recorder's ``Arrays``."""

    name = "torch"

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def make(self, values: NDArray[Any]) -> Any:
        """Make an array of these values; with two axes it has their strides too, if the framework supports strides."""
        return self._arrays.make(computable(values), name_of(values.dtype), _layout(values), False)

    def read(self, array: Any) -> NDArray[Any]:
        """Copy the values of ``array`` into separate memory."""
        dtype, values = self._arrays.read(array)
        return typed(values, dtype) if dtype == "bfloat16" else np.array(values, order="C")

    def holds(self, value: object) -> bool:
        """Return whether ``value`` is one of the framework's arrays."""
        return self._arrays.kind(value) == "tensor"

    def address(self, array: Any) -> Any:
        """Return the memory of ``array``, equal to any that overlaps it; some frameworks have no addresses."""
        return Memory(array, self._arrays)


class Memory:
    """The present memory of an array; the array may be rebound to other memory later."""

    def __init__(self, array: Any, arrays: Arrays) -> None:
        self._array = array.detach() if hasattr(array, "detach") else array
        self._arrays = arrays

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        empty = not self._arrays.read(self._array)[1].size
        return empty or self._array is other._array or self._arrays.overlap(self._array, other._array)

    def __hash__(self) -> int:
        return id(self)


def native(framework: str) -> Kind:
    """Return the kind of a framework's own arrays."""
    return Torch() if framework == "torch" else Native(dialect(framework).arrays)


def _layout(values: NDArray[Any]) -> str:
    if values.flags.c_contiguous or not values.size:
        return ""
    return "transposed" if values.ndim == 2 and values.flags.f_contiguous else "strided"
