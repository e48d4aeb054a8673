"""Converts torch's tensors to CuPy's arrays, and makes CuPy's stream follow torch's.

CuPy is imported by the program that has such an array, not here.

Source: CuPy 14.2 and torch 2.11 on an H100.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from collshim.accelerator import cuda_handle

_DEFAULT_STREAMS = (0, 1)  # CUDA's handles for it

_NAMES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_DTYPES = {getattr(torch, name): np.dtype(name) for name in _NAMES}


def is_cupy(array: object) -> bool:
    """Return whether this is an array of CuPy's."""
    return type(array).__module__.partition(".")[0] == "cupy"


class _Owner:
    """Owns the memory of a result, and the stream of CuPy's that may still use it when it is dropped.

    torch's allocator then records an event on that stream. CuPy destroys a stream with its object, and an event on a
    destroyed stream crashes the process; so the memory goes first.
    """

    __slots__ = ("memory", "stream")

    def __init__(self, memory: Any, stream: Any) -> None:
        self.memory, self.stream = memory, stream

    def __del__(self) -> None:
        self.memory = None


def from_torch(tensor: Tensor) -> Any:
    """Return a CuPy array of the same memory, which CuPy's current stream may use."""
    cupy: Any = sys.modules["cupy"]
    tensor = tensor.detach()
    dtype = _DTYPES.get(tensor.dtype)
    if dtype is None or not tensor.is_cuda or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        array = cupy.from_dlpack(tensor)  # orders the streams too
        address, nbytes, number = array.data.ptr, array.data.mem.size, array.device.id
        owner, shape, dtype, strides = _Owner(array, _stream(number)), array.shape, array.dtype, array.strides
    else:
        address, nbytes, number = tensor.data_ptr(), tensor.nbytes, tensor.get_device()
        owner, shape, strides = _Owner(tensor, _stream(number)), tuple(tensor.shape), None
        if (stream := _order(owner.stream.ptr, number)) is not None:
            tensor.record_stream(stream)  # as in ``follow``
    memory = cupy.cuda.UnownedMemory(address, nbytes, owner, number)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


def follow(array: Any, result: Any) -> Any:
    """Make CuPy's current stream on the GPU of ``array`` follow torch's, and hold the memory of ``result`` for it."""
    number = array.device.id
    stream = _order(_stream(number).ptr, number)
    if stream is not None:
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_cuda:
                leaf.record_stream(stream)  # once dropped, its memory is not reused before CuPy has read it
    return result


def _stream(number: int) -> Any:
    """Return CuPy's current stream on a GPU."""
    return sys.modules["cupy"].cuda.get_current_stream(number)


def _order(handle: int, number: int) -> torch.cuda.Stream | None:
    """Make CuPy's stream of this handle follow torch's on a GPU, and return it; None if they are the same stream."""
    if handle == cuda_handle(number):
        return None
    default = handle in _DEFAULT_STREAMS
    stream = torch.cuda.default_stream(number) if default else torch.cuda.ExternalStream(handle, device=number)
    stream.wait_stream(torch.cuda.current_stream(number))
    return stream
