"""MegEngine's dtypes: NumPy's in the interface, torch's inside, and the promotion of two dtypes.

Sources: MegEngine 1.13.0, ``megengine.core.tensor.dtype``; promotion as observed there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, also

_NAMES = ("float32", "float16", "bool", "int8", "uint8", "int16", "uint16", "int32", "complex64")
_TO_TORCH = {np.dtype(name): getattr(torch, name) for name in _NAMES}
_TO_NUMPY = {found: dtype for dtype, found in _TO_TORCH.items()}
_NARROWER = {
    torch.float64: torch.float32,
    torch.int64: torch.int32,
    torch.complex128: torch.complex64,
}
_UNSIGNED = (torch.uint8, torch.uint16)


def torch_dtype(dtype: Any) -> torch.dtype:
    """Return the torch dtype that corresponds to one of MegEngine's.

    Raises:
        RuntimeError: (a TypeError too) MegEngine does not have this dtype, for example float64 or int64.
    """
    if isinstance(dtype, torch.dtype):
        found: torch.dtype | None = dtype if dtype in _TO_NUMPY or dtype is torch.bfloat16 else None
    elif dtype == "bfloat16" or getattr(dtype, "__name__", getattr(dtype, "name", None)) == "bfloat16":
        found = torch.bfloat16
    else:
        found = _TO_TORCH.get(np.dtype(dtype))
    if found is None:
        raise also(ArgumentTypeError, RuntimeError)(
            f"unsupported numpy dtype {dtype}: dtype should be one of {', '.join(_NAMES)}, bfloat16"
        )
    return found


def numpy_dtype(dtype: torch.dtype) -> Any:
    """Return the NumPy dtype that corresponds to a torch dtype."""
    if dtype is torch.bfloat16:
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return _TO_NUMPY[dtype]


def narrowed(value: torch.Tensor) -> torch.Tensor:
    """Convert a value to one of MegEngine's dtypes: 64-bit numbers become 32-bit."""
    narrower = _NARROWER.get(value.dtype)
    return value if narrower is None else value.to(narrower)


def promoted(dtypes: Sequence[torch.dtype], weak: Sequence[type]) -> torch.dtype:
    """Return the dtype for arithmetic between tensors of these dtypes and Python numbers of these types.

    A float with any other dtype becomes float32, and so does a boolean with any other dtype. Two integer dtypes become
    the wider one. A Python float turns integers into float32; no other Python number changes a dtype.

    Raises:
        RuntimeError: the dtypes are signed and unsigned integers.
    """
    kinds = set(dtypes)
    if not kinds:
        return torch.float32 if float in weak else torch.int32
    if len(kinds) == 1:
        only = dtypes[0]
        is_strong = only.is_floating_point or only.is_complex
        if is_strong or not weak or (float not in weak and only is not torch.bool):
            return only
        return torch.float32
    if any(dtype.is_complex for dtype in kinds):
        return torch.complex64
    if torch.bool in kinds or any(dtype.is_floating_point for dtype in kinds) or float in weak:
        return torch.float32
    if any(dtype in _UNSIGNED for dtype in kinds) and not all(dtype in _UNSIGNED for dtype in kinds):
        names = " ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise also(ArgumentTypeError, RuntimeError)(
            f"dtype promotion rule between different signedness is undefined: {names}: convert one to a different dtype"
        )
    return max(kinds, key=lambda dtype: dtype.itemsize)


def is_dtype_equal(dt1: Any, dt2: Any) -> bool:
    """Return whether two dtypes are equal."""
    return torch_dtype(dt1) is torch_dtype(dt2)


def is_differentible_dtype(dtype: Any) -> bool:
    """Return whether tensors of a dtype have gradients; the spelling of the name is MegEngine's."""
    found = torch_dtype(dtype)
    return found.is_floating_point or found.is_complex


def is_quantize(dtype: Any) -> bool:
    """Return False: quantized dtypes do not exist here."""
    return False
