"""Validation of a call's arguments, in torch's order and with torch's words, before anything is sent.

The class of each error derives from collshim's own class and from the class that torch 2.13.0 raises.
"""

from __future__ import annotations

import sys
import warnings
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ReduceOp, supports_complex

from collshim.adapting.refusing import refuse
from collshim.arrays import as_output, as_torch, is_array

_OPS = {
    ReduceOp.SUM: "sum",
    ReduceOp.AVG: "avg",
    ReduceOp.PRODUCT: "prod",
    ReduceOp.MIN: "min",
    ReduceOp.MAX: "max",
    ReduceOp.BAND: "band",
    ReduceOp.BOR: "bor",
    ReduceOp.BXOR: "bxor",
    ReduceOp.PREMUL_SUM: "premul_sum",
}
NAMES = {id(op): name for op, name in _OPS.items()}
"""The operations by id: torch's named ones are permanent objects, and ``id`` avoids their hash function in C++."""

NAMED: dict[Any, Any] = {name: op for op, name in _OPS.items()}
"""The permanent object that torch has for each name."""

_ELEMENT = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def require_tensor(name: str, value: Any) -> None:
    """Refuse a value that is neither a tensor nor another kind of array."""
    if type(value) is not torch.Tensor and not is_array(value):
        expected = f"Expected parameter `{name}` of type torch.Tensor"
        refuse(TypeError, f"Invalid function argument. {expected} but got {type(value)} instead")


def require_list(name: str, value: Any) -> None:
    """Refuse a value that is not a list (a tuple is not) of tensors or other arrays."""
    expected = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]"
    if not isinstance(value, list):
        refuse(TypeError, f"{expected} but got {type(value)} instead")
    if not all(type(part) is torch.Tensor or is_array(part) for part in value):
        refuse(TypeError, f"{expected} but got {type(value)} with elements of type {[type(part) for part in value]}")


def arrays_of(name: str, value: Any) -> list[Any]:
    """Return the tensors or other arrays of any iterable as a list."""
    try:
        arrays = list(value)
    except TypeError:
        arrays = value  # refused below, with its type in the error
    require_list(name, arrays)
    return arrays


def list_or_nothing(name: str, value: Any) -> list[Any]:
    """Return a list of arrays; an empty list if the value is None or empty."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return []
    require_list(name, value)
    return list(value)


def same_dtype(*arrays: Any) -> tuple[Any, ...]:
    """Return arrays and lists of arrays, all of which must have the same dtype.

    If complex tensors are passed together with real tensors of the matching dtype, they are returned as pairs of real
    numbers, as in torch.
    """
    dtypes: dict[torch.dtype, None] = {}
    for value in arrays:
        for array in value if isinstance(value, list) else (value,):
            dtypes[array.dtype if type(array) is torch.Tensor else _dtype(array)] = None
    if len(dtypes) <= 1:
        return arrays
    if len({_ELEMENT.get(dtype, dtype) for dtype in dtypes}) > 1:
        names = " and ".join(map(str, dtypes))
        refuse(ValueError, f"Invalid usage of tensors with different dtypes: found {names}, should be one")
    return tuple([*map(_real, part)] if isinstance(part, list) else _real(part) for part in arrays)


def is_complex(array: Any) -> bool:
    """Return whether an array's elements are complex numbers."""
    return array.is_complex() if type(array) is torch.Tensor else bool(_dtype(array).is_complex)


def reduction(op: Any) -> str | tuple[str, float]:
    """Return the engine's name of a ReduceOp, with its factor if it has one."""
    name = NAMES.get(id(op))
    if name is not None:
        return name
    kind = getattr(op, "op", None) if type(op) is ReduceOp else op
    if not isinstance(kind, ReduceOp.RedOpType):
        refuse(TypeError, f"incompatible function arguments: op is {op!r}, should be a ReduceOp")
    factor = _factor(op) if kind == ReduceOp.PREMUL_SUM and type(op) is ReduceOp else None
    return _OPS[kind] if factor is None else (_OPS[kind], float(factor))


def reduction_of(op: Any, *arrays: Any) -> str | tuple[str, float]:
    """Return ``reduction(op)``; refuse complex arrays if the operation needs an order or bits."""
    name = NAMES.get(id(op)) or reduction(op)
    if any(map(is_complex, arrays)) and not supports_complex(op):
        refuse(ValueError, f"all_reduce does not support {op} on complex tensors")
    return name


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("collshim."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def warn_renamed(old: str, new: str) -> None:
    """Warn, as torch 2.13 does, that a function is called by its earlier name."""
    notice = "is a private function and will be deprecated" if old.startswith("_") else "is deprecated"
    warn(f"`torch.distributed.{old}` {notice}. Please use `torch.distributed.{new}` instead.", FutureWarning)


def seconds(timeout: Any) -> float | None:
    """Convert a timedelta to seconds; None stays None."""
    if timeout is None:
        return None
    if not isinstance(timeout, timedelta):
        refuse(TypeError, f"Expected timeout argument to be of type datetime.timedelta, got {timeout!r}")
    return timeout.total_seconds()


def _factor(op: Any) -> Any:
    try:
        return op.__getstate__()[1]
    except RuntimeError:  # ReduceOp(PREMUL_SUM) without a factor
        return None


def _dtype(array: Any) -> torch.dtype:
    return array.dtype if isinstance(array, torch.Tensor) else as_torch(array).dtype


def _real(array: Any) -> torch.Tensor:
    tensor = as_output(array)
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
