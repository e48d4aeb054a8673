"""Converts torch's tensors to CuPy's arrays, and makes CuPy's stream follow torch's.

CuPy is imported by the program that has such an array, not here.

Source: CuPy 14.2 and torch 2.11 on an H100.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

_DEFAULT_STREAMS = (0, 1)  # CUDA's handles for it


def is_cupy(array: object) -> bool:
    """Return whether this is an array of CuPy's."""
    return type(array).__module__.partition(".")[0] == "cupy"


class _Owner:
    """Owns the memory of a result, and the stream of CuPy's that may still use it when it is dropped.

    torch's allocator then records an event on that stream. CuPy destroys a stream with its object, and an event on a
    destroyed stream crashes the process; so the memory goes first.
    """

    __slots__ = ("array", "stream")

    def __init__(self, array: Any, stream: Any) -> None:
        self.array, self.stream = array, stream

    def __del__(self) -> None:
        self.array = None


def from_torch(tensor: Tensor) -> Any:
    """Return a CuPy array of the same memory, which CuPy's current stream may use."""
    cupy: Any = importlib.import_module("cupy")
    array = cupy.from_dlpack(tensor.detach())
    number = array.device.id
    owner = _Owner(array, cupy.cuda.get_current_stream(number))
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.data.mem.size, owner, number)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0), array.strides)


def follow(array: Any, result: Any) -> Any:
    """Make CuPy's current stream on the GPU of ``array`` follow torch's, and hold the memory of ``result`` for it."""
    cupy: Any = importlib.import_module("cupy")
    number = array.device.id
    current, handle = torch.cuda.current_stream(number), cupy.cuda.get_current_stream(number).ptr
    if handle != current.cuda_stream:
        default = handle in _DEFAULT_STREAMS
        stream = torch.cuda.default_stream(number) if default else torch.cuda.ExternalStream(handle, device=number)
        stream.wait_stream(current)
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_cuda:
                leaf.record_stream(stream)  # once dropped, its memory is not reused before CuPy has read it
    return result
