"""Converts arrays, tensors and dtypes to plain values and bytes, and back.

For an array, pickle names functions that take addresses, offsets and states from whoever wrote it. Here it is a
description of a dtype, a shape and bytes, which are checked against each other before memory is touched.
"""

from __future__ import annotations

import copyreg
import math
import operator
import pickle
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import torch

from collshim.layout import as_bytes, buffer

Untrusted: TypeAlias = Any
"""A value that may come out of a sender's pickle: nothing is known of it before it was checked."""

Description: TypeAlias = Any
"""Describes a dtype: NumPy's text for it, or a tuple; see ``described_dtype``."""

_TEXT = re.compile(r"[<>|][?a-zA-Z]\d{0,9}(\[\d{0,9}[a-zA-Z]{1,2}\])?")
_DEVICE = re.compile(r"cpu|cuda:\d{1,3}")
_POINTER = 8
_DEEPEST = 32
"""The deepest nesting of dtypes."""


def described_dtype(dtype: np.dtype[np.generic]) -> Description:
    """Describe a dtype by text, or by a tuple of its parts.

    Raises:
        TypeError: the dtype is another library's, or has metadata.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return "several", described_dtype(base), shape
    if type(dtype) not in _DTYPES or dtype.metadata:
        raise TypeError(f"dtype {dtype!r} has no plain description")
    if dtype.names is None:
        return dtype.str
    fields: Any = dtype.fields
    parts = [(name, fields[name]) for name in dtype.names]
    several = [(name, part[2] if len(part) > 2 else None, described_dtype(part[0]), part[1]) for name, part in parts]
    return "fields", several, dtype.itemsize, dtype.isalignedstruct


def dtype_of(description: Description, depth: int = 0) -> np.dtype[np.generic]:
    """Make the dtype of a description; NumPy checks it.

    Raises:
        pickle.UnpicklingError: the description is not that of a dtype.
    """
    if depth > _DEEPEST:
        raise pickle.UnpicklingError(f"dtypes within each other, deeper than {_DEEPEST}")
    try:
        return _dtype(description, depth)
    except (TypeError, ValueError, OverflowError) as error:
        raise pickle.UnpicklingError(f"dtype {description!r:.200} ({error})") from error


def _dtype(description: Description, depth: int) -> np.dtype[np.generic]:
    if isinstance(description, str):
        if _TEXT.fullmatch(description) is None:
            raise ValueError("no text of a dtype")
        return np.dtype(description)
    kind, *rest = description
    if kind == "several":
        base, shape = rest
        return np.dtype((dtype_of(base, depth + 1), _shape(shape)))
    fields, size, is_aligned = rest
    if kind != "fields" or type(fields) is not list:
        raise ValueError("neither fields nor several")
    names, titles, parts, offsets = zip(*fields, strict=True) if fields else ((), (), (), ())
    spec: dict[str, Any] = {
        "names": list(names),
        "formats": [dtype_of(part, depth + 1) for part in parts],
        "offsets": [operator.index(offset) for offset in offsets],
        "itemsize": operator.index(size),
    }
    if any(title is not None for title in titles):
        spec["titles"] = list(titles)
    made: Any = np.dtype(spec, align=bool(is_aligned))  # type: ignore[call-overload]
    return made  # type: ignore[no-any-return]


def _shape(shape: Untrusted) -> tuple[int, ...]:
    if type(shape) is not tuple or not all(type(length) is int and length >= 0 for length in shape):
        raise pickle.UnpicklingError(f"shape {shape!r:.200}")
    return shape


def array_of(description: Description, shape: Untrusted, is_fortran: Untrusted, data: Untrusted) -> Untrusted:
    """Make an array from a copy of these bytes."""
    dtype = _without_objects(dtype_of(description))
    _require_bytes(data, math.prod(_shape(shape)) * dtype.itemsize)
    if not data:
        return np.ndarray(shape, dtype, order="F" if is_fortran else "C")  # zeros would give empty text a character
    array = np.frombuffer(data, np.uint8).copy().view(dtype).reshape(shape, order="F" if is_fortran else "C")
    _settle(array)
    return array


def object_array_of(description: Description, shape: Untrusted, is_fortran: Untrusted, places: Untrusted) -> Untrusted:
    """Make an array of objects, all 0, for ``fill``.

    ``places`` has a byte for each element, so that a sender can only ask for memory in proportion to what it sends.
    """
    dtype = dtype_of(description)
    if not dtype.hasobject:
        raise pickle.UnpicklingError(f"dtype {dtype}, should be one with objects")
    _require_bytes(places, math.prod(_shape(shape)) * max(1, dtype.itemsize // _POINTER))
    return np.zeros(shape, dtype, "F" if is_fortran else "C")


def fill(array: Untrusted, values: Untrusted) -> None:
    """Put ``values`` into an array of objects, in row-major order."""
    is_one = type(array) is np.ndarray and array.dtype.hasobject
    if not is_one or type(values) is not list or len(values) != array.size:
        raise pickle.UnpicklingError(
            f"values for an array of {getattr(array, 'size', 0)} objects, should be a list of as many"
        )
    for index, value in zip(np.ndindex(array.shape), values, strict=True):
        array[index] = value


def scalar_of(description: Description, data: Untrusted) -> Untrusted:
    """Make a NumPy scalar."""
    return array_of(description, (), False, data)[()]


def tensor_of(
    name: Untrusted, shape: Untrusted, order: Untrusted, data: Untrusted, device: Untrusted, flags: Untrusted
) -> torch.Tensor:
    """Make a tensor from these bytes; ``order`` lists its dimensions as they lie in memory, the outermost first.

    ``flags``: whether it requires a gradient, is conjugated, and is the negative of its memory.
    """
    dtype, lengths = _torch_dtype(name), _shape(shape)
    if sorted(_shape(order)) != list(range(len(lengths))):
        raise pickle.UnpicklingError(f"dimensions in order {order!r:.200}")
    _require_bytes(data, math.prod(lengths) * dtype.itemsize)
    tensor = torch.empty([lengths[dim] for dim in order], dtype=dtype, device="cpu")
    if data:
        _put(np.frombuffer(data, np.uint8), as_bytes(tensor).numpy(), dtype is torch.bool)
    needs_gradient, is_conjugated, is_negative = flags
    tensor = tensor.permute([order.index(dim) for dim in range(len(order))]).to(_device(device))
    tensor = tensor.conj() if is_conjugated is True else tensor
    tensor = torch._neg_view(tensor) if is_negative is True else tensor
    return tensor.requires_grad_(needs_gradient is True)


def parameter_of(data: Untrusted, needs_gradient: Untrusted) -> torch.nn.Parameter:
    """Make a parameter from a tensor."""
    if type(data) is not torch.Tensor:
        raise pickle.UnpicklingError("a parameter of no tensor")
    return torch.nn.Parameter(data, needs_gradient is True)


def uuid_of(number: Untrusted) -> UUID:
    """Make a UUID."""
    if type(number) is not int:
        raise pickle.UnpicklingError(f"a UUID of {number!r:.200}")
    return UUID(int=number)


def _torch_dtype(name: Untrusted) -> torch.dtype:
    dtype = getattr(torch, name, None) if type(name) is str else None
    if not isinstance(dtype, torch.dtype) or dtype in _QUANTIZED:
        raise pickle.UnpicklingError(f"dtype {name!r:.200}")
    return dtype


def _device(name: Untrusted) -> torch.device:
    if type(name) is not str or _DEVICE.fullmatch(name) is None:
        raise pickle.UnpicklingError(f"device {name!r:.200}")  # for some others torch would import a module
    device = torch.device(name)
    if device.index is not None and device.index >= torch.cuda.device_count():
        raise pickle.UnpicklingError(f"a tensor on {device}; there are {torch.cuda.device_count()} GPUs here")
    return device


def _without_objects(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    if dtype.hasobject:
        raise pickle.UnpicklingError(f"bytes as the addresses of objects ({dtype})")
    return dtype


def _require_bytes(data: Untrusted, count: int) -> None:
    if type(data) not in (bytes, bytearray) or len(data) != count:
        got = len(data) if isinstance(data, bytes | bytearray) else type(data).__name__
        raise pickle.UnpicklingError(f"{got} bytes for {count}")


def _put(data: Untrusted, memory: Untrusted, are_booleans: bool) -> None:
    """Copy bytes; those of booleans become 0 or 1, on which torch relies."""
    np.not_equal(data, 0, out=memory.view(np.bool_)) if are_booleans else np.copyto(memory, data)


def _settle(array: Untrusted) -> None:
    """Make each boolean 0 or 1, on which NumPy relies when it counts them, and refuse characters that do not exist."""
    dtype = array.dtype
    if dtype == np.bool_:
        array[...] = array.view(np.uint8) != 0
    if dtype.kind == "U" and array.nbytes:
        points = np.ascontiguousarray(array).view(f"{dtype.byteorder}u4")
        if points.max() > sys.maxunicode:
            raise pickle.UnpicklingError(f"a character of number {points.max()}, the last one is {sys.maxunicode}")
    for name in dtype.names or ():
        _settle(array[name])


Reduced: TypeAlias = Any
"""A result of pickle's ``__reduce_ex__``."""


def _pack_array(array: Untrusted) -> Reduced:
    try:
        description = described_dtype(array.dtype)
    except TypeError:
        return array.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    is_fortran = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
    if array.dtype.hasobject:
        places = bytes(array.size * max(1, array.itemsize // _POINTER))
        return object_array_of, (description, array.shape, is_fortran, places), _values(array), None, None, fill
    return array_of, (description, array.shape, is_fortran, _bytes(array, "F" if is_fortran else "C"))


def _values(array: Untrusted) -> list[Untrusted]:
    return array.reshape(-1).tolist()  # type: ignore[no-any-return]


def _bytes(array: Untrusted, order: Untrusted) -> Untrusted:
    """Return an array's bytes, in a buffer that pickle reads without a copy."""
    if not array.nbytes:
        return b""
    flat: Any = np.asarray(array, order=order).reshape(-1, order=order).view(np.uint8)
    return pickle.PickleBuffer(flat)


def _pack_scalar(scalar: Untrusted) -> Reduced:
    try:
        description = described_dtype(scalar.dtype)
    except TypeError:
        return scalar.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if scalar.dtype.hasobject:
        return scalar.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return scalar_of, (description, scalar.tobytes())


def _pack_dtype(dtype: Untrusted) -> Reduced:
    try:
        return dtype_of, (described_dtype(dtype),)
    except TypeError:
        return dtype.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


def _pack_tensor(tensor: torch.Tensor) -> Reduced:
    if not _is_plain(tensor):
        return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    flags = tensor.requires_grad, tensor.is_conj(), tensor.is_neg()
    bare = tensor.detach()
    bare = bare.conj() if flags[1] else bare
    bare = torch._neg_view(bare) if flags[2] else bare
    order = sorted(range(bare.dim()), key=bare.stride, reverse=True)
    flat = bare.permute(order)
    if not flat.is_contiguous():
        order, flat = list(range(bare.dim())), bare.contiguous()
    data = pickle.PickleBuffer(_memory(flat.cpu(), tensor)) if flat.numel() else b""
    name = str(tensor.dtype).removeprefix("torch.")
    return tensor_of, (name, tuple(tensor.shape), tuple(order), data, str(tensor.device), flags)


def _memory(flat: torch.Tensor, tensor: torch.Tensor) -> Untrusted:
    """Return the bytes of ``flat``: valid while ``tensor`` lives, or a copy that lives as long as it is referenced."""
    return buffer(flat) if flat.data_ptr() == tensor.data_ptr() else as_bytes(flat).numpy()


def _pack_parameter(parameter: Untrusted) -> Reduced:
    if not _is_plain(parameter):
        return parameter.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return parameter_of, (parameter.data, parameter.requires_grad)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether bytes, a dtype and a shape describe the tensor completely."""
    is_bare = not tensor.__dict__ and not tensor._backward_hooks and not any(getattr(tensor, "names", ()))
    is_dense = tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_quantized
    return is_bare and is_dense and tensor.device.type in ("cpu", "cuda") and not torch._is_functional_tensor(tensor)


def _pack_uuid(uuid: UUID) -> Reduced:
    return uuid_of, (uuid.int,)


def _kinds() -> dict[type, Callable[[Untrusted], Reduced]]:
    packed: dict[type, Callable[[Any], Reduced]] = dict.fromkeys(_DTYPES, _pack_dtype)
    packed |= dict.fromkeys({np.dtype(code).type for code in np.typecodes["All"] if code != "O"}, _pack_scalar)
    packed |= {np.ndarray: _pack_array, torch.Tensor: _pack_tensor, torch.nn.Parameter: _pack_parameter}
    return packed | {UUID: _pack_uuid}


_DTYPES: frozenset[type] = frozenset(type(np.dtype(code)) for code in np.typecodes["All"])
_QUANTIZED: Sequence[torch.dtype] = (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4)
PACKED: Any = ChainMap(_kinds(), copyreg.dispatch_table)
"""How pickle reduces objects, by class: an attribute of a ``pickle.Pickler``."""

MAKERS = (dtype_of, array_of, object_array_of, fill, scalar_of, tensor_of, parameter_of, uuid_of)
"""The functions of this module that packed objects name; they name no others."""
