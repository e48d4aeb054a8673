"""Objects that no collective takes, and arrays that one cannot read, or cannot write; made on the rank, by name."""

from __future__ import annotations

import datetime
import decimal
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.engine.foreign import Foreign


class Broken:
    """An object that claims to be an array, but is not."""

    dtype = "float32"
    shape = (2, 2)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("nothing here")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Worse(Broken):
    """An object that raises what no array raises."""

    def __dlpack__(self, **options: Any) -> Any:
        raise KeyError("nothing here")

    def __dlpack_device__(self) -> tuple[int, int]:
        raise KeyError("nowhere")


def _read_only() -> Any:
    array = np.zeros((2, 2), np.float32)
    array.flags.writeable = False
    return array


def _sparse_rows() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that the layout is in beta
        return torch.eye(2).to_sparse_csr()


def _quantized() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that they are deprecated
        return torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.quint8)


def _freed() -> torch.Tensor:
    tensor = torch.ones(2, 2)
    tensor.untyped_storage().resize_(0)
    return tensor


NO_ARRAYS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "an object": object,
    "a list": lambda: [[1.0, 2.0], [3.0, 4.0]],
    "a tuple": lambda: (1.0, 2.0),
    "a dict": lambda: {"a": 1.0},
    "a set": lambda: {1, 2},
    "a range": lambda: range(4),
    "a generator": lambda: (number for number in range(4)),
    "a function": lambda: len,
    "a class": lambda: int,
    "the class of tensors": lambda: torch.Tensor,
    "the class of NumPy's arrays": lambda: np.ndarray,
    "a dtype": lambda: torch.float32,
    "a memoryview": lambda: memoryview(b"abcd"),
    "a decimal": lambda: decimal.Decimal(1),
    "a date": lambda: datetime.date(2026, 1, 1),
    "a broken array": Broken,
    "a worse array": Worse,
}
NESTS = ("a list", "a tuple", "a dict", "a range", "a memoryview")
"""The types that ``tf.nest.flatten`` traverses (TensorFlow 2.21)."""
NO_LEAVES = tuple(name for name in NO_ARRAYS if name not in NESTS)

UNREADABLE: dict[str, Callable[[], Any]] = {
    "strings": lambda: np.array([["a", "b"], ["c", "d"]]),
    "objects": lambda: np.array([[None, 1], [2, 3]], object),
    "dates": lambda: np.zeros((2, 2), "datetime64[s]"),
    "long doubles": lambda: np.ones((2, 2), np.longdouble),
    "records": lambda: np.zeros((2, 2), [("a", np.float32)]),
    "a sparse tensor": lambda: torch.eye(2).to_sparse(),
    "a tensor of sparse rows": _sparse_rows,
    "a quantized tensor": _quantized,
    "a tensor of mkldnn": lambda: torch.ones(2, 2).to_mkldnn(),
    "a tensor whose memory was freed": _freed,
    "a masked array": lambda: np.ma.masked_array(np.ones((2, 2), np.float32), [[False, True], [False, False]]),
}
"""Without a meta tensor, which torch ignores silently, and a nested one; tests/engine has them."""
UNWRITABLE: dict[str, Callable[[], Any]] = {
    "a read-only array": _read_only,
    "an expanded tensor": lambda: torch.zeros(2, 1).expand(2, 2),
    "a broadcast array": lambda: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (2, 2), (0, 0)),
    "an array backwards": lambda: np.zeros((2, 2), np.float32)[::-1],
    "overlapping elements": lambda: torch.zeros(3).as_strided((2, 2), (1, 1)),
    "another byte order": lambda: np.ones((2, 2), ">f4"),
    "a NumPy scalar": lambda: np.float32(1),
}
SHARED = ("an expanded tensor", "a broadcast array", "overlapping elements")
"""Outputs with shared elements that all_reduce may write in place."""
NO_WAY_BACK: dict[str, Callable[[], Any]] = {
    "a foreign array without a way back": lambda: Foreign(np.ones((2, 2), np.float32)),
}
"""Arrays that can be read, but are bad if a result of their kind is wanted."""
UNSUPPORTED = NO_ARRAYS | UNREADABLE | UNWRITABLE | NO_WAY_BACK
