"""Objects as bytes: what ``options(objects=...)`` lets a receiver restore.

pickle runs what the sender chose. "safe" restores numbers, text, containers, tensors and NumPy arrays alone, and calls
nothing but the classes and functions named here. Nor does it let a sender change what exists already (a class, say), or
set an array's or a dtype's state: NumPy takes any, and the next read would follow addresses that the sender chose.
"""

from __future__ import annotations

import importlib
import io
import math
import operator
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
import torch
import torch._utils as torch_utils

_PLAIN = {
    "builtins": ("bytearray", "complex", "range", "slice"),
    "collections": ("Counter", "OrderedDict", "deque"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "numpy": ("ndarray",),
    "torch": ("Size", "device"),
    "uuid": ("UUID",),
}
"""Classes that make nothing but values."""

_NUMPY_MODULES = ("numpy._core.multiarray", "numpy.core.multiarray", "numpy._core.numeric", "numpy.core.numeric")
_DTYPE = re.compile(r"[?a-zA-Z]\d{0,9}")
_ORDERS = ("<", ">", "|", "=")
_ALIGNED = 0x80  # NumPy's NPY_ALIGNED_STRUCT


def restored(data: Any, *, safely: bool) -> Any:
    """The object that was pickled.

    Raises:
        UnpicklingError: ``safely``, and it is, or has in it, something else than the values named above.
        Exception: whatever the classes of the object raise.
    """
    return _SafeUnpickler(io.BytesIO(data)).load() if safely else pickle.loads(data)


def _refusal(what: str) -> pickle.UnpicklingError:
    text = (
        f"{what} makes no number, text, container, tensor or array, and options(objects='safe') restores nothing else"
    )
    return pickle.UnpicklingError(text)


class _Unbuilt:
    """An array or a dtype whose state has not come yet."""

    def __init__(self, build: Callable[..., Any], *arguments: Any) -> None:
        self.build = partial(build, *arguments)
        self.number = -1


class _SafeUnpickler(pickle._Unpickler):  # the one in Python: that in C lets nobody see what is given a state
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    memo: dict[int, Any]
    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        kind = "numpy" if module in _NUMPY_MODULES else module
        if (kind, name) in _REPLACED:
            return _REPLACED[kind, name]
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if name in _PLAIN.get(module, ()):
            return getattr(importlib.import_module(module), name)
        raise _refusal(f"{module}.{name}")

    def _reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack[-1]
        made = self.stack[-1] = function(*arguments)
        if isinstance(made, _Unbuilt):
            made.number = len(self.memo)  # where pickle is about to keep it

    def _build(self) -> None:
        state: Any = self.stack.pop()
        found: Any = self.stack[-1]
        if isinstance(found, _Unbuilt):
            number, made = found.number, found.build(*state)
            self.stack[-1] = made
            if self.memo.get(number) is found:
                self.memo[number] = made
        elif isinstance(found, UUID):
            with_state: Any = found
            with_state.__setstate__({"int": operator.index(state["int"])})
        else:
            raise _refusal(f"a state of {found!r}")

    dispatch |= {pickle.REDUCE[0]: _reduce, pickle.BUILD[0]: _build}


def _dtype(text: str, *_: Any) -> _Unbuilt:
    if _DTYPE.fullmatch(text) is None:
        raise _refusal(f"dtype {text!r}")
    return _Unbuilt(_dtype_of, text)


def _dtype_of(
    text: str,
    _: int,
    order: str,
    subarray: Any,
    names: Any,
    fields: Any,
    size: int,
    __: int,
    flags: int,
    more: Any = None,
) -> Any:
    """A dtype as its state describes it, made and checked by NumPy's constructor."""
    if subarray is not None:
        return np.dtype(subarray)
    if names is not None:
        parts = [fields[name] for name in names]
        spec: dict[str, Any] = {
            "names": list(names),
            "formats": [part[0] for part in parts],
            "offsets": [part[1] for part in parts],
        }
        if any(len(part) > 2 for part in parts):
            spec["titles"] = [part[2] if len(part) > 2 else None for part in parts]
        whole: Any = {**spec, "itemsize": size}
        return np.dtype(whole, align=bool(flags & _ALIGNED))
    if order not in _ORDERS:
        raise _refusal(f"byte order {order!r}")
    unit, number = (b"generic", 1) if more is None else more[1][:2]
    named: Any = f"{order}{text}" if unit == b"generic" else f"{order}{text}[{int(number)}{unit.decode()}]"
    return np.dtype(named)


def _reconstruct(kind: Any, *_: Any) -> _Unbuilt:
    if kind is not np.ndarray:
        raise _refusal(f"an array of {kind!r}")
    return _Unbuilt(_array_of)


def _array_of(_: int, shape: tuple[int, ...], dtype: Any, is_fortran: bool, data: Any) -> Any:
    order: Any = "F" if is_fortran else "C"
    if not _require_dtype(dtype).hasobject:
        return np.ndarray(shape, dtype, data, order=order).copy("K")
    if not isinstance(data, list) or len(data) != math.prod(shape):
        raise _refusal(f"an array of shape {shape}")
    flat = np.empty(len(data), dtype)
    for index, value in enumerate(data):
        flat[index] = value
    return flat.reshape(shape).copy(order)  # whose list goes along the rows in either order


def _frombuffer(data: Any, dtype: Any, shape: tuple[int, ...], order: Any, axes: Any = None) -> Any:
    if _require_dtype(dtype).hasobject or not isinstance(data, bytes | bytearray):
        raise _refusal(f"an array of {dtype}")
    array: Any = np.frombuffer(data, dtype)  # unlike ndarray it keeps the sender's bytearray from being moved
    array = array.reshape(shape, order="C" if order == "K" else order)
    return array if axes is None else array.transpose(axes)


def _scalar(dtype: Any, data: Any) -> Any:
    if _require_dtype(dtype).hasobject:
        raise _refusal(f"a scalar of {dtype}")
    return np.ndarray((), dtype, data).copy()[()]


def _require_dtype(dtype: Any) -> Any:
    if not isinstance(dtype, np.dtype):
        raise _refusal(f"dtype {dtype!r}")
    return dtype


def _storage(data: bytes) -> Any:
    try:
        return torch.load(io.BytesIO(data), weights_only=True)
    except AttributeError as error:  # torch 2.13 looks for the dtype that the storage of an 8-bit float has not
        raise _refusal("a storage without a dtype (of an 8-bit float, say)") from error


def _tensor(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool, hooks: Any, *more: Any) -> Any:
    """A tensor; hooks would be called in a backward. ``more`` are the dtype, where its storage has none, and flags."""
    if hooks or not isinstance(storage, torch.storage.TypedStorage | torch.storage.UntypedStorage):
        raise _refusal("a tensor with hooks, or without a storage,")
    version = "3" if more and isinstance(more[0], torch.dtype) else "2"
    rebuild = getattr(torch_utils, f"_rebuild_tensor_v{version}")
    return rebuild(storage, offset, size, stride, requires_grad, OrderedDict(), *more)


def _parameter(data: Any, requires_grad: bool, hooks: Any) -> Any:
    if hooks or not isinstance(data, torch.Tensor):
        raise _refusal("a parameter with hooks, or without a tensor,")
    return torch.nn.Parameter(data, requires_grad)


_REPLACED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _dtype,
    ("numpy", "_reconstruct"): _reconstruct,
    ("numpy", "_frombuffer"): _frombuffer,
    ("numpy", "scalar"): _scalar,
    ("torch.storage", "_load_from_bytes"): _storage,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
}
"""What makes an array or a tensor, with its arguments looked at."""
