"""The dtypes of torch that collectives carry: one row per dtype, and the sets that the engine asks for.

A dtype that has no row is moved as bytes and cannot be reduced. Rows of dtypes that this release of torch lacks are
left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch


class _Row(NamedTuple):
    """One dtype.

    Attributes:
        family: "float", "complex", "integer", "unsigned" or "bool"; "exponent" has neither zero nor sign.
        is_native: whether gloo and NCCL have the type; other dtypes travel as bytes.
        wide: the dtype that its reductions are computed in, since torch computes little in the dtype itself.
        signed: the signed dtype of the same bits, in which an unsigned one is reduced.
        numpy: the name of NumPy's dtype, or of the dtype of the same bits if NumPy lacks it (``is_foreign``).
        is_foreign: whether NumPy has the dtype by the package ml_dtypes only.
    """

    family: str
    is_native: bool = False
    wide: str = ""
    signed: str = ""
    numpy: str = ""
    is_foreign: bool = False


_ROWS = {
    "float64": _Row("float", is_native=True, numpy="float64"),
    "float32": _Row("float", is_native=True, numpy="float32"),
    "float16": _Row("float", is_native=True, numpy="float16"),
    "bfloat16": _Row("float", is_native=True, numpy="uint16", is_foreign=True),
    "float8_e4m3fn": _Row("float", wide="float32", numpy="uint8", is_foreign=True),
    "float8_e5m2": _Row("float", wide="float32", numpy="uint8", is_foreign=True),
    "float8_e4m3fnuz": _Row("float", wide="float32", numpy="uint8", is_foreign=True),
    "float8_e5m2fnuz": _Row("float", wide="float32", numpy="uint8", is_foreign=True),
    "float8_e8m0fnu": _Row("exponent", numpy="uint8", is_foreign=True),
    "complex128": _Row("complex", numpy="complex128"),
    "complex64": _Row("complex", numpy="complex64"),
    "complex32": _Row("complex", wide="complex64"),
    "int64": _Row("integer", is_native=True, numpy="int64"),
    "int32": _Row("integer", is_native=True, numpy="int32"),
    "int16": _Row("integer", numpy="int16"),
    "int8": _Row("integer", is_native=True, numpy="int8"),
    "uint8": _Row("integer", is_native=True, numpy="uint8"),
    "uint16": _Row("unsigned", signed="int16", numpy="uint16"),
    "uint32": _Row("unsigned", signed="int32", numpy="uint32"),
    "uint64": _Row("unsigned", signed="int64", numpy="uint64"),
    "bool": _Row("bool", is_native=True, numpy="bool"),
}

_PRESENT: dict[torch.dtype, _Row] = {getattr(torch, name): row for name, row in _ROWS.items() if hasattr(torch, name)}

NATIVE = {dtype for dtype, row in _PRESENT.items() if row.is_native}
"""The dtypes that gloo and NCCL have types for."""

NATIVE_FLOATS = {dtype for dtype in NATIVE if _PRESENT[dtype].family == "float"}
NATIVE_INTEGERS = {dtype for dtype in NATIVE if _PRESENT[dtype].family == "integer"}
NATIVE_NUMBERS = NATIVE_FLOATS | NATIVE_INTEGERS

INTEGERS = {dtype for dtype, row in _PRESENT.items() if row.family == "integer"}
"""The integers that torch computes in."""

REDUCIBLE = {dtype for dtype, row in _PRESENT.items() if row.family != "exponent"}
"""The dtypes whose elements can be reduced."""

WIDE: dict[torch.dtype, torch.dtype] = {dtype: getattr(torch, row.wide) for dtype, row in _PRESENT.items() if row.wide}
"""The dtype that reductions of a dtype are computed in, if it is another one."""

SIGNED: dict[torch.dtype, torch.dtype] = {
    dtype: getattr(torch, row.signed) for dtype, row in _PRESENT.items() if row.signed
}
"""The signed integers of the same bits as unsigned ones."""

NUMPY_BITS = {
    str(dtype).removeprefix("torch."): np.dtype(row.numpy) for dtype, row in _PRESENT.items() if row.is_foreign
}
"""By a dtype's name: NumPy's dtype of the same bits, if NumPy lacks the dtype itself."""

NUMPY_DTYPES = {
    np.dtype(row.numpy)
    for row in _PRESENT.values()
    if row.numpy and not row.is_foreign and row.family not in ("complex", "unsigned")
}
"""NumPy's dtypes whose arrays every release of torch views directly, and whose reductions need no other dtype."""

PARTS_OF_A_BYTE = {
    getattr(torch, name) for bits in range(1, 8) for name in (f"int{bits}", f"uint{bits}") if hasattr(torch, name)
}
"""Since torch 2.7. torch has no kernels for them, not even to copy one."""
