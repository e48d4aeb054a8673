"""MindSpore's communication functions, over collshim: put ``collshim.`` in front of the import.

    mindspore.communication             init, ranks and groups
    mindspore.communication.comm_func   the functional collectives
    mindspore.Tensor                    makes torch tensors; ``isinstance`` against it holds for torch tensors
    mindspore.float32, ...              torch's dtypes

Tensors are torch tensors, NumPy arrays, CuPy arrays or anything with DLPack, and results come in the kind
that was given. The rest of MindSpore (``nn``, ``ops``, ``mint``, ``set_context``, ...) is not covered: such a
name raises AttributeError. Sources: the reference manual and behaviour of MindSpore 2.10.0.
"""

from __future__ import annotations

from typing import NoReturn

from torch import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from torch import bool as bool_

from collshim.mindspore import communication, mint, ops
from collshim.mindspore.tensor import Tensor

__all__ = [
    "Tensor",
    "bfloat16",
    "bool_",
    "communication",
    "complex64",
    "complex128",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "mint",
    "ops",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module 'collshim.mindspore' has no attribute {name!r}: it covers MindSpore's communication "
        f"({', '.join(__all__)}); compute with torch"
    )
