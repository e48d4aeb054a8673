"""Converts Python numbers and nested lists of numbers to tensors: which kinds may be mixed, and the resulting dtype.

The first number determines which kinds may follow. Source: see ``constants``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim.arrays import as_torch, is_array
from collshim.errors import ArgumentTypeError, ArgumentValueError

_INT32, _INT64 = torch.iinfo(torch.int32), torch.iinfo(torch.int64)
_FLOAT_DTYPES: dict[type, torch.dtype] = {np.float16: torch.float16, np.float64: torch.float64}
_COMPATIBLE = {"b": "bp", "i": "ipf", "f": "fip", "c": "cfip"}  # what may follow; p: Python's own bool


def tensor_of(value: Any, dtype: torch.dtype | None) -> Tensor:
    """Return a tensor with the numbers in ``value``, with ``dtype`` or else TensorFlow's dtype for them.

    Raises:
        ArgumentTypeError: ``dtype`` cannot hold such numbers.
        ArgumentValueError: ``value`` has entries that are not numbers, kinds that do not mix, lists of unequal lengths,
            or a number that is out of range.
    """
    numbers, shape = _parse(value)
    kinds = [_kind(number) for number in numbers]
    _require_numbers(numbers, kinds, "" if dtype is not None else "s")
    if dtype is None:
        kind = _kind_of_all(kinds)
        array = _array(numbers, kind)
        dtype = _default_dtype(numbers, kind, array)
    else:
        _require_representable(value, kinds, dtype)
        array = _array(numbers, "f" if dtype.is_floating_point else "c" if dtype.is_complex else "i")
    return torch.from_numpy(array).reshape(shape).to(dtype)


def _parse(value: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the numbers in a flat list, and the shape of the nested lists."""
    if isinstance(value, list | tuple | range):
        children = [_parse(child) for child in value]
        shapes = {shape for _, shape in children}
        if len(shapes) > 1:
            raise ArgumentValueError(
                f"Can't convert non-rectangular Python sequence to Tensor: it holds parts of shapes {sorted(shapes)}"
            )
        inner = shapes.pop() if shapes else ()
        return [number for numbers, _ in children for number in numbers], (len(value), *inner)
    if not is_array(value):
        return [value], ()
    array = value if isinstance(value, np.ndarray | np.generic) else _in_numpy(as_torch(value).detach().cpu())
    return list(array.flat), tuple(array.shape)


def _in_numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return array


def _kind(number: Any) -> str:
    if isinstance(number, bool | str | bytes):
        return "p" if isinstance(number, bool) else "s"
    for kind, types in (("b", np.bool_), ("i", int | np.integer), ("f", float | np.floating)):
        if isinstance(number, types):
            return kind
    return "c" if isinstance(number, complex | np.complexfloating) else ""


def _require_numbers(numbers: list[Any], kinds: list[str], text: str) -> None:
    """Refuse everything that is not a number; text, of the kind ``text``, only if it has no dtype to compare with."""
    others = [number for number, kind in zip(numbers, kinds, strict=True) if kind in ("", text)]
    if others:
        value = others[0]
        raise ArgumentValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor."
        )


def _kind_of_all(kinds: list[str]) -> str:
    """Return the kind of the first number: b, i, f or c; f if floats follow integers, or if there are no numbers.

    Raises:
        ArgumentValueError: the kinds do not mix.
    """
    first = kinds[0].replace("p", "b") if kinds else "f"
    if any(kind not in _COMPATIBLE[first] for kind in kinds):
        raise ArgumentValueError("Can't convert Python sequence with mixed types to Tensor.")
    return "f" if first == "i" and "f" in kinds else first


def _array(numbers: list[Any], kind: str) -> np.ndarray[Any, Any]:
    """Return the numbers in the widest dtype of their kind."""
    if kind == "i" and numbers and not _INT64.min <= min(numbers) <= max(numbers) <= _INT64.max:
        raise ArgumentValueError("Can't convert Python sequence with out-of-range integer to Tensor.")
    return np.array(numbers, dtype={"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128}[kind])


def _default_dtype(numbers: list[Any], kind: str, array: np.ndarray[Any, Any]) -> torch.dtype:
    if kind == "i":
        fits = array.size == 0 or (array.min() >= _INT32.min and array.max() <= _INT32.max)
        return torch.int32 if fits else torch.int64
    if kind != "f":
        return torch.bool if kind == "b" else torch.complex128
    first = type(numbers[0]) if numbers else float
    dtype = _FLOAT_DTYPES.get(first, torch.float32)
    if np.any(np.isfinite(array) & (np.abs(array) > torch.finfo(dtype).max)):
        raise ArgumentValueError(
            "Can't convert Python sequence with a value out of range for a double-precision float."
        )
    return dtype


def _require_representable(value: Any, kinds: list[str], dtype: torch.dtype) -> None:
    kinds_of_dtype = (
        "pifc" if dtype.is_complex else "pif" if dtype.is_floating_point else "bp" if dtype is torch.bool else "pi"
    )
    if any(kind not in kinds_of_dtype for kind in kinds):
        name = {torch.float32: "float", torch.float64: "double", torch.float16: "half"}.get(dtype, str(dtype))
        raise ArgumentTypeError(f"Cannot convert {value!r} to EagerTensor of dtype {name.removeprefix('torch.')}")
