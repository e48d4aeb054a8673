"""Array classes unknown to collshim: NumPy memory behind DLPack, with and without a conversion back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from collshim.arrays import dlpack, register_kind


class Foreign:
    """An array with only ``__dlpack__``: collshim can read it, but not return one."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Bare(Foreign):
    """Registered, so that collshim can make one."""


class Standard(Foreign):
    """An array of the array API standard: its namespace makes one from DLPack."""

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda source: Standard(np.from_dlpack(source)))


class Old(Foreign):
    """An array with DLPack before version 1: no keywords but ``stream``."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__()


class Unsigned(Foreign):
    """An array whose strides are divided by its items' size as unsigned numbers, as CuPy 14 does."""

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.array.__dlpack__(**options)
        tensor = dlpack.tensor_of(capsule)
        for axis, bytes_ in enumerate(self.array.strides):
            tensor.strides[axis] = bytes_ % 2**64 // self.array.itemsize
        return capsule


def from_torch(tensor: torch.Tensor) -> Bare:
    return Bare(tensor.detach().numpy())


register_kind(Bare, from_torch)
