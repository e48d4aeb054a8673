"""What a DLPack capsule says of its memory, read before torch sees it: torch 2.13 ends the process on negative strides.

The layouts are those of DLPack 1.0: ``DLManagedTensor`` begins with its ``DLTensor``; ``DLManagedTensorVersioned`` has
a version, two pointers and the flags before it, of which bit 0 says that the memory must not be written.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch

_READ_ONLY = 1
_CUDA = 2
_LEGACY = 1  # how the default stream is written for CUDA
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
    """An array's strides, in elements, and whether it may be written."""

    strides: tuple[int, ...]
    writable: bool


def memory(array: Any) -> Memory:
    """What ``array.__dlpack__()`` says of its memory; whatever that raises, this raises."""
    stream = _stream(*array.__dlpack_device__())
    try:
        capsule = array.__dlpack__(max_version=(1, 0), **stream)
    except (TypeError, NotImplementedError):  # of before version 1: it does not know, or refuses, the keyword
        capsule = array.__dlpack__(**stream)
    name = _NAME(capsule)
    if name == b"dltensor_versioned":
        versioned = ctypes.cast(_CAPSULE(capsule, name), ctypes.POINTER(_Versioned)).contents
        return Memory(_strides(versioned.tensor), not versioned.flags & _READ_ONLY)
    return Memory(_strides(ctypes.cast(_CAPSULE(capsule, name), ctypes.POINTER(_Tensor)).contents), True)


def _stream(kind: int, number: int) -> dict[str, int]:
    """The stream that is to follow the array's; without a word it would be the default one, which no capture allows."""
    if kind != _CUDA:
        return {}
    return {"stream": torch.cuda.current_stream(f"cuda:{number}").cuda_stream or _LEGACY}


def _strides(tensor: _Tensor) -> tuple[int, ...]:
    return tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else ()
