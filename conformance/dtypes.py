"""Dtypes by name: NumPy's, and bfloat16, which NumPy lacks: an array of it holds the bits, in a dtype of this name.

Standard library and NumPy only.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BFLOAT16: np.dtype[Any] = np.dtype([("bfloat16", np.uint16)])


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of this name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of this dtype."""
    return "bfloat16" if dtype == BFLOAT16 else str(dtype)


def typed(numbers: NDArray[Any], name: str) -> NDArray[Any]:
    """``numbers`` in the dtype of this name, rounded to the nearest."""
    if name != "bfloat16":
        return numbers.astype(name)
    bits = np.array(numbers, np.float32, order="C").view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # ties to even; a NaN that is rounded up would be none
    kept = np.where(np.isnan(numbers), bits >> 16 | 0x40, rounded)
    return kept.astype(np.uint16).view(BFLOAT16)


def computable(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a dtype that NumPy computes with: float32 for bfloat16."""
    if array.dtype != BFLOAT16:
        return array
    bits = bits_of(array).astype(np.uint32)
    np.left_shift(bits, np.uint32(16), out=bits)  # by an int, NumPy 1 would make int64 of an array ()
    return bits.view(np.float32)


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """The bits of an array of bfloat16, in the same memory."""
    return array.view(np.uint16)


def full(shape: Any, number: Any, name: str) -> NDArray[Any]:
    """An array of this shape that is full of ``number``."""
    return np.full(shape, typed(np.asarray(number), name), dtype_of(name))
