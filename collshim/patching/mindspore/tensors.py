"""MindSpore's tensors as torch tensors in the same memory: by DLPack, or by NumPy for dtypes that its DLPack lacks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import dlpack

from collshim.arrays import as_torch, to_numpy
from collshim.errors import ArgumentError, also, refusal
from collshim.patching.mindspore.pending import PendingHandles, span
from collshim.patching.replacing import Foreign

_WITHOUT_DLPACK = (torch.bool, torch.complex64, torch.complex128)


class Tensors:
    """Reads, writes and makes MindSpore's tensors."""

    def __init__(self) -> None:
        self.pending = PendingHandles()
        self.tensor: Any = importlib.import_module("mindspore").Tensor
        self._dlpack: Any = importlib.import_module("mindspore.utils.dlpack")
        self._bases = (self.tensor, importlib.import_module("mindspore._c_expression").TensorPy)
        self._executor: Any = importlib.import_module("mindspore.graph.api")._pynative_executor

    def require(self, function: str, value: object, rank: int, size: int) -> None:
        """Raise a TypeError unless the value is a MindSpore tensor."""
        if not isinstance(value, self._bases):
            text = refusal(function, "the input", type(value), "a mindspore.Tensor", rank, size)
            raise also(ArgumentError, TypeError)(text)

    def read(self, tensor: Foreign) -> Tensor:
        """Wait for the calls that write the tensor, and return it as a torch tensor to read."""
        if self.dtype(tensor.dtype) in _WITHOUT_DLPACK:
            return as_torch(tensor.asnumpy())
        shared: Tensor = dlpack.from_dlpack(self._dlpack.to_dlpack(tensor))
        if self.pending:
            self.pending.settle(*span(shared))
        return shared

    def target(self, tensor: Foreign) -> tuple[Tensor, Callable[[], None]]:
        """Wait for the tensor's readers; return a dense torch tensor to write, and a function to call afterwards."""
        self._executor.sync()
        shared = self.read(tensor)
        if not shared.is_contiguous() and shared.dtype not in _WITHOUT_DLPACK:
            dense = shared.contiguous()
            return dense, lambda: _copy(shared, dense)
        if shared.dtype not in _WITHOUT_DLPACK or shared.data_ptr() == tensor.data_ptr() or not shared.numel():
            return shared, _nothing
        return shared, lambda: tensor.copy_(self.make(shared))  # the tensor is a view, which NumPy has copied

    def make(self, tensor: Tensor) -> Foreign:
        """Return a MindSpore tensor in the memory of a torch tensor."""
        if tensor.dtype in _WITHOUT_DLPACK:
            return self.tensor.from_numpy(to_numpy(tensor.contiguous()))
        return self._dlpack.from_dlpack(dlpack.to_dlpack(tensor.contiguous()))

    def wrap_asnumpy(self, asnumpy: Callable[[Foreign], Foreign]) -> Callable[[Foreign], Foreign]:
        """Return MindSpore's ``asnumpy``, extended to first wait for calls that write into the tensor."""

        def read(tensor: Foreign) -> Foreign:
            if self.pending:
                first = tensor.data_ptr()
                self.pending.settle(first, first + tensor.nbytes)
            return asnumpy(tensor)

        return read

    def dtype(self, dtype: Foreign) -> torch.dtype:
        """Return the torch dtype that corresponds to a MindSpore dtype."""
        found: torch.dtype = getattr(torch, str(dtype).lower().removeprefix("mindspore."))
        return found

    def empty(self, shape: Sequence[int], dtype: Foreign) -> Tensor:
        """Return a new tensor for received data."""
        return torch.empty(tuple(shape), dtype=self.dtype(dtype))


def _copy(target: Tensor, source: Tensor) -> None:
    target.copy_(source)


def _nothing() -> None:
    """Do nothing: the data was written into the tensor itself."""
