"""``mindspore.common.dtype``: torch's dtypes under MindSpore's names (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
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
from torch import dtype as Type

from collshim.adapting.refusing import refuse
from collshim.arrays import as_torch

half, single, double = float16, float32, float64
short, byte, int_, long = int16, int8, int32, int64
float_ = float32
number = Type
_PYTHON: dict[Any, torch.dtype] = {bool: bool_, int: int64, float: float64, "int": int64, "float": float64}

__all__ = [
    "Type",
    "bfloat16",
    "bool_",
    "byte",
    "complex64",
    "complex128",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float16",
    "float32",
    "float64",
    "float_",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "long",
    "pytype_to_dtype",
    "short",
    "single",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def torch_dtype(value: Any) -> torch.dtype:
    """Return the torch dtype for a dtype, a dtype's name, or a Python or NumPy type.

    Raises:
        TypeError: ``value`` is not a dtype, a dtype's name, or a Python or NumPy type with a dtype.
    """
    if isinstance(value, torch.dtype):
        return value
    if isinstance(value, type | str) and value in _PYTHON:
        return _PYTHON[value]
    named = getattr(torch, value.removesuffix("_").lower(), None) if isinstance(value, str) else None
    if isinstance(named, torch.dtype):
        return named
    try:
        return as_torch(np.empty((), dtype=value)).dtype
    except TypeError:
        refuse(TypeError, f"a dtype must be one of MindSpore's or NumPy's, or its name, but got {value!r}")


def dtype_name(dtype: torch.dtype) -> str:
    """Return MindSpore's printed name of a dtype: Float32, BFloat16, Bool."""
    name = str(dtype).removeprefix("torch.")
    return {"bfloat16": "BFloat16"}.get(name, name.replace("uint", "UInt") if "uint" in name else name.capitalize())


def dtype_to_nptype(type_: torch.dtype) -> Any:
    """Return the NumPy type for a dtype; float32 for bfloat16."""
    if type_ is bfloat16:
        return np.float32
    return torch.empty((), dtype=torch_dtype(type_)).numpy().dtype.type


def dtype_to_pytype(type_: torch.dtype) -> type:
    """Return the Python type for a dtype."""
    if type_ is bool_:
        return bool
    return complex if type_.is_complex else float if type_.is_floating_point else int


def pytype_to_dtype(obj: Any) -> torch.dtype:
    """Return the dtype for a Python or NumPy type.

    Raises:
        NotImplementedError: if there is no dtype for the type.
    """
    try:
        return torch_dtype(obj)
    except TypeError:
        refuse(NotImplementedError, f"Unsupported python type {obj}")
