"""Dtypes by name: NumPy's, and bfloat16. NumPy lacks bfloat16, so its arrays hold the bits in a dtype of that name.

This module needs only the standard library and NumPy.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BFLOAT16: np.dtype[Any] = np.dtype([("bfloat16", np.uint16)])


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of this name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of this dtype."""
    return "bfloat16" if dtype == BFLOAT16 else str(dtype)


def typed(numbers: NDArray[Any], name: str) -> NDArray[Any]:
    """Round ``numbers`` to the nearest in the dtype of this name."""
    if name != "bfloat16":
        return numbers.astype(name)
    bits = np.array(numbers, np.float32, order="C").view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # ties to even; rounding up would destroy a NaN
    kept = np.where(np.isnan(numbers), bits >> 16 | 0x40, rounded)
    return kept.astype(np.uint16).view(BFLOAT16)


def computable(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in a dtype that NumPy computes with: float32 for bfloat16."""
    if array.dtype != BFLOAT16:
        return array
    bits = bits_of(array).astype(np.uint32)
    np.left_shift(bits, np.uint32(16), out=bits)  # with a Python int, NumPy 1 would make int64 of an array of shape ()
    return bits.view(np.float32)


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """View the bits of an array of bfloat16, in the same memory."""
    return array.view(np.uint16)


def full(shape: Any, number: Any, name: str) -> NDArray[Any]:
    """Return an array of this shape filled with ``number``."""
    return np.full(shape, typed(np.asarray(number), name), dtype_of(name))
