"""The dtypes that TensorFlow's collective operations take from replicas, and its words for those they do not.

Source: TensorFlow 2.21 on CPU, recorded answers of ``ReplicaContext.all_gather`` (float16, 32, 64 and int32, 64
pass; bfloat16, int8, complex64 and strings are refused) and of ``all_reduce`` (those and bfloat16 pass; bool,
uint8, complex64 and strings are refused), under ``MirroredStrategy`` and ``MultiWorkerMirroredStrategy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import as_torch
from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.indexed_slices import IndexedSlices

# In the order and by the names of TensorFlow's two texts.
_GATHERED = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
}
_REDUCED = {
    torch.bfloat16: "bfloat16",
    torch.float32: "float",
    torch.float16: "half",
    torch.float64: "double",
    torch.int32: "int32",
    torch.int64: "int64",
}


def require_gathered(arrays: Sequence[Any], communicator: Communicator) -> None:
    """Refuse arrays that ``all_gather`` does not take.

    Raises:
        ArgumentTypeError: with what came, what passes, and the rank.
    """
    for tensor in map(as_torch, arrays):
        if tensor.dtype not in _GATHERED:
            raise ArgumentTypeError(
                f"all_gather: Value passed to parameter 'input' has DataType {_name(tensor)} not in list of allowed "
                f"values: {', '.join(_GATHERED.values())} {_where(tensor, communicator)}"
            )


def require_reduced(leaves: Sequence[Any], communicator: Communicator) -> None:
    """Refuse arrays that ``all_reduce`` does not take; slices are not looked at.

    Raises:
        InvalidArgumentError: and a ValueError, with what came, what passes, and the rank.
    """
    for tensor in (as_torch(leaf) for leaf in leaves if not isinstance(leaf, IndexedSlices)):
        if tensor.dtype not in _REDUCED:
            raise invalid_argument(
                f"all_reduce: Value for attr 'T' of {_name(tensor)} is not in the list of allowed values: "
                f"{', '.join(_REDUCED.values())} {_where(tensor, communicator)}"
            )


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _where(tensor: Tensor, communicator: Communicator) -> str:
    return f"(rank {communicator.rank} of {communicator.size}, shape {list(tensor.shape)})"
