"""Makes a DLPack capsule and reads what it says of its memory before torch gets it: torch aborts on negative strides.

The layouts are those of DLPack 1.0: ``DLManagedTensor`` begins with its ``DLTensor``; ``DLManagedTensorVersioned`` has
a version, two pointers and the flags before it. Bit 0 of the flags marks read-only memory.
"""

from __future__ import annotations

import ctypes
import inspect
from typing import Any, NamedTuple

import torch

from collshim.accelerator import cuda_handle

_READ_ONLY = 1
_CUDA, _ROCM = 2, 10
_LEGACY = 1  # the default stream's value for CUDA
_VERSIONED = b"dltensor_versioned"
_LARGEST = 1 << 48
"""More than any stride in memory."""

TAKES_VERSIONS = "max_version" in inspect.signature(torch.Tensor.__dlpack__).parameters
"""Whether torch takes capsules of DLPack 1.0, which say whether the memory is read-only; its tensors then make them."""
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


def capsule_of(array: Any, *, versioned: bool = False) -> Any:
    """Return ``array.__dlpack__()``, a capsule that torch takes; pass on any exception that it raises.

    With ``versioned`` it is of DLPack 1.0 if the array's library makes such ones, whether or not torch takes them. If
    torch takes none, and the library refuses to share read-only memory without saying so, the capsule has a copy.
    """
    stream = _stream(*array.__dlpack_device__())
    if not (versioned or TAKES_VERSIONS):
        return _unversioned(array, stream)
    try:
        return array.__dlpack__(max_version=(1, 0), **stream)
    except (TypeError, NotImplementedError):  # before version 1 the keyword is unknown, or refused
        return array.__dlpack__(**stream)


def _unversioned(array: Any, stream: dict[str, int]) -> Any:
    try:
        return array.__dlpack__(**stream)
    except BufferError as refusal:
        try:
            return array.__dlpack__(copy=True, **stream)
        except TypeError:  # the library does not know the keyword
            raise refusal from None


def memory(capsule: Any) -> Memory:
    """Return what a capsule says of its memory; before version 1.0 it may be written."""
    name = _NAME(capsule)
    if name == _VERSIONED:
        versioned = _Versioned.from_address(_CAPSULE(capsule, name))
        return Memory(_strides(versioned.tensor), not versioned.flags & _READ_ONLY)
    return Memory(_strides(_Tensor.from_address(_CAPSULE(capsule, b"dltensor"))), True)


def tensor_of(capsule: Any) -> Any:
    """Return the ``DLTensor`` in a capsule; it is valid as long as the capsule is."""
    if _NAME(capsule) == _VERSIONED:
        return _Versioned.from_address(_CAPSULE(capsule, _VERSIONED)).tensor
    return _Tensor.from_address(_CAPSULE(capsule, b"dltensor"))


def _stream(kind: int, number: int) -> dict[str, int]:
    """Return the stream that is to follow the array's; the default one, used otherwise, forbids captures."""
    if kind not in (_CUDA, _ROCM):
        return {}
    return {"stream": cuda_handle(number) or (_LEGACY if kind == _CUDA else 0)}


def _strides(tensor: _Tensor) -> tuple[int, ...]:
    """Return the strides in elements; CuPy 14 divides bytes by the item's size unsigned, so -1 arrives as 2**61 - 1."""
    if not tensor.strides:
        return ()
    strides = tuple(tensor.strides[: tensor.ndim])
    if not strides or (min(strides) >= 0 and max(strides) < _LARGEST):
        return strides
    size = max(1, tensor.bits * tensor.lanes // 8)
    return tuple(ctypes.c_int64(stride * size).value // size for stride in strides)
