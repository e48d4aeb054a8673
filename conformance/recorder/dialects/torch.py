"""PyTorch: ranks over gloo, started with torchrun's variables."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.dialects import OwnArrays, Started, modules
from collshim.conformance.recorder.trees import laid_out


class TorchArrays(OwnArrays):
    """``torch.Tensor`` on the CPU."""

    path = "torch"

    def __init__(self, mutable: bool = True, marks: bool = True) -> None:
        self.mutable = mutable
        self.marks = marks

    def make(self, values: NDArray[Any], dtype: str, layout: str, grad: bool) -> Any:
        """Make a tensor with the layout of ``laid_out``."""
        if values.dtype == object:
            raise TypeError("torch has no tensors of text")
        tensor = self.module.from_numpy(laid_out(values, layout))
        tensor = tensor.to(self.module.bfloat16) if dtype == "bfloat16" else tensor
        return tensor.requires_grad_() if grad else tensor

    def read_own(self, array: Any) -> tuple[str, NDArray[Any]]:
        """Return the dtype and the values as a NumPy array."""
        plain = array.detach().resolve_conj()
        wide = plain.float() if plain.dtype == self.module.bfloat16 else plain
        return str(array.dtype).removeprefix("torch."), np.array(wide.numpy())

    def overlap(self, one: Any, other: Any) -> bool:
        """Return whether the ranges of memory overlap, each from the first to the last element."""
        if not self.mutable:
            return False
        (a, b), (c, d) = _stretch(one), _stretch(other)
        return a < d and c < b

    def dtype_name(self, value: object) -> str | None:
        """Return the name of a ``torch.dtype``."""
        return str(value).removeprefix("torch.") if isinstance(value, self.module.dtype) else None

    def gradient(self, function: Callable[[Any], Any], x: Any, dy: Any) -> Any:
        """Return ``x``'s gradient if ``dy`` is that of ``function(x)``; None if the result is not differentiable."""
        leaf = x.detach().clone().requires_grad_()
        y = function(leaf)
        if y is None or not y.requires_grad:
            return None
        y.backward(dy)
        return leaf.grad


def _stretch(array: Any) -> tuple[int, int]:
    if isinstance(array, np.ndarray):
        ends = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
        start, item = array.__array_interface__["data"][0], array.itemsize
    else:
        ends = [
            (length - 1) * stride * array.element_size()
            for length, stride in zip(array.shape, array.stride(), strict=True)
        ]
        start, item = array.data_ptr(), array.element_size()
    return (start, start + sum(ends) + item) if 0 not in array.shape else (start, start)


ARRAYS = TorchArrays()


class _Torch:
    arrays = ARRAYS
    runs_on_cpu = True
    limits = r"Invalid scalar type|PREMUL_SUM with Gloo"
    consequences = r"[Cc]onnection (closed|reset)|Read error|closed by peer"

    def version(self) -> str:
        return re.sub(r"\+.*", "", self.arrays.module.__version__)

    def place(self) -> tuple[int, int]:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def enter(self, prefix: str, asked: Asked, rank: int) -> dict[str, Any]:
        names = modules(prefix, {"dist": "torch.distributed"})
        dist = names["dist"]
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        return {**names, "torch": self.arrays.module, "np": np, "gradient": self.arrays.gradient}

    def command(self, python: str, size: int, world: str, port: int, folder: Path) -> list[Started]:
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
        common |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        return [Started([python], common | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(size)]

    def leaves_unusable(self, classes: Sequence[str]) -> bool:
        """Return whether the error may have come from gloo during an exchange."""
        return classes[0] == "RuntimeError" or "torch.distributed" in classes[0]


DIALECT = _Torch()
