"""Reads what a DLPack capsule says of its memory before torch sees it: torch aborts on negative strides.

The layouts are those of DLPack 1.0: ``DLManagedTensor`` begins with its ``DLTensor``; ``DLManagedTensorVersioned`` has
a version, two pointers and the flags before it. Bit 0 of the flags marks read-only memory.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch

_READ_ONLY = 1
_CUDA = 2
_LEGACY = 1  # the default stream's value for CUDA
_CAPSULE = ctypes.pythonapi.PyCapsule_GetPointer
_CAPSULE.restype = ctypes.c_void_p
_CAPSULE.argtypes = [ctypes.py_object, ctypes.c_char_p]
_NAME = ctypes.pythonapi.PyCapsule_GetName
_NAME.restype = ctypes.c_char_p
_NAME.argtypes = [ctypes.py_object]


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class Memory(NamedTuple):
    """An array's strides, in elements, and whether it may be written to."""

    strides: tuple[int, ...]
    writable: bool


def memory(array: Any) -> Memory:
    """Return what ``array.__dlpack__()`` says of its memory; pass on any exception that it raises."""
    stream = _stream(*array.__dlpack_device__())
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **stream)
    except (TypeError, NotImplementedError):  # before version 1 the keyword is unknown, or refused
        capsule = array.__dlpack__(**stream)
    if _NAME(capsule) == b"dltensor_versioned":
        return Memory(_strides(tensor_of(capsule)), not _versioned(capsule).flags & _READ_ONLY)
    return Memory(_strides(tensor_of(capsule)), True)


def tensor_of(capsule: Any) -> Any:
    """Return the ``DLTensor`` in a capsule; it is valid as long as the capsule is."""
    if _NAME(capsule) == b"dltensor_versioned":
        return _versioned(capsule).tensor
    return ctypes.cast(_CAPSULE(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents


def _versioned(capsule: Any) -> _Versioned:
    return ctypes.cast(_CAPSULE(capsule, b"dltensor_versioned"), ctypes.POINTER(_Versioned)).contents


def _stream(kind: int, number: int) -> dict[str, int]:
    """Return the stream that is to follow the array's; the default one, used otherwise, forbids captures."""
    if kind != _CUDA:
        return {}
    return {"stream": torch.cuda.current_stream(f"cuda:{number}").cuda_stream or _LEGACY}


def _strides(tensor: _Tensor) -> tuple[int, ...]:
    """Return the strides in elements; CuPy 14 divides bytes by the item's size unsigned, so -1 arrives as 2**61 - 1."""
    if not tensor.strides:
        return ()
    size = max(1, tensor.bits * tensor.lanes // 8)
    return tuple(ctypes.c_int64(tensor.strides[axis] * size).value // size for axis in range(tensor.ndim))
