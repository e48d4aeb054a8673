"""The dtypes that TensorFlow's operations between replicas accept, and its words for the others.

Source: TensorFlow 2.21 on CPU. ``ReplicaContext.all_gather`` and ``Strategy.gather`` between replicas accept float16,
32, 64 and int32, 64. ``all_reduce``, and ``Strategy.reduce`` between workers, accept those and bfloat16. Sums in one
process (``MirroredStrategy.reduce``, ``CrossDeviceOps``, ``all_reduce`` over them) accept all but bool. Single
replicas, and ``all_gather`` and ``gather`` over ``cross_device_ops``, accept any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import as_torch
from collshim.errors import ArgumentTypeError
from collshim.tensorflow.errors import invalid_argument, mismatch
from collshim.tensorflow.indexed_slices import IndexedSlices

# In the order and with the names of TensorFlow's texts.
GATHERED = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
}
REDUCED = {
    torch.bfloat16: "bfloat16",
    torch.float32: "float",
    torch.float16: "half",
    torch.float64: "double",
    torch.int32: "int32",
    torch.int64: "int64",
}
_ADDED = (
    "float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, complex128, half, uint32, uint64"
)


def require_gathered(collective: str, tensors: Sequence[Tensor], rank: int, size: int) -> None:
    """Refuse tensors whose dtype cannot be gathered.

    Raises:
        ArgumentTypeError: a dtype is not accepted; the message names it, the accepted dtypes, and the rank.
    """
    for tensor in tensors:
        if tensor.dtype not in GATHERED:
            raise ArgumentTypeError(
                f"{collective}: Value passed to parameter 'input' has DataType {_name(tensor)} not in list of allowed "
                f"values: {', '.join(GATHERED.values())} {_where(tensor, rank, size)}"
            )


def require_reduced(collective: str, leaves: Sequence[Any], rank: int, size: int) -> None:
    """Refuse arrays whose dtype cannot be reduced between devices; slices are not checked.

    Raises:
        InvalidArgumentError: (also a ValueError) a dtype is not accepted; the message names it, the accepted dtypes,
            and the rank.
    """
    for tensor in _arrays(leaves):
        if tensor.dtype not in REDUCED:
            raise invalid_argument(_not_listed(collective, tensor, ", ".join(REDUCED.values()), rank, size))


def require_added(collective: str, leaves: Sequence[Any], rank: int, size: int) -> None:
    """Refuse bool, which cannot be summed; slices are not checked.

    Raises:
        InvalidArgumentError: (also a ValueError) a dtype is not accepted; the message names it, the accepted dtypes,
            and the rank.
    """
    for tensor in _arrays(leaves):
        if tensor.dtype is torch.bool:
            raise invalid_argument(_not_listed(collective, tensor, _ADDED, rank, size))


def require_summed(collective: str, tensor: Tensor) -> None:
    """Refuse to sum a bool tensor along its axes.

    Raises:
        ArgumentTypeError: TensorFlow raises this here, but InvalidArgumentError between replicas.
    """
    if tensor.dtype is torch.bool:
        raise ArgumentTypeError(
            f"{collective}: Value passed to parameter 'input' has DataType bool not in list of allowed values: {_ADDED}"
        )


def require_one_dtype(collective: str, operation: str, tensors: Sequence[Tensor]) -> None:
    """Refuse components of different dtypes, which torch would promote; ``operation`` is TensorFlow's name for it.

    Raises:
        InvalidArgumentError: (also a MismatchError) the dtypes differ; the text has all of them.
    """
    first = tensors[0]
    for place, tensor in enumerate(tensors):
        if tensor.dtype != first.dtype:
            raise mismatch(
                f"{collective}: the replicas have dtypes {[_name(one) for one in tensors]}: cannot compute {operation} "
                f"as input #{place}(zero-based) was expected to be a {_short_name(first)} tensor but is a "
                f"{_short_name(tensor)} tensor"
            )


def _arrays(leaves: Sequence[Any]) -> list[Tensor]:
    return [as_torch(leaf) for leaf in leaves if not isinstance(leaf, IndexedSlices)]


def _not_listed(collective: str, tensor: Tensor, allowed: str, rank: int, size: int) -> str:
    return (
        f"{collective}: Value for attr 'T' of {_name(tensor)} is not in the list of allowed values: {allowed} "
        f"{_where(tensor, rank, size)}"
    )


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _short_name(tensor: Tensor) -> str:
    return REDUCED.get(tensor.dtype, _name(tensor))


def _where(tensor: Tensor, rank: int, size: int) -> str:
    return f"(rank {rank} of {size}, shape {list(tensor.shape)})"
