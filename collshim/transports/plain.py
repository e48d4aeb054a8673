"""What takes the short way: plain arrays, which one look can judge, with results of their own kind.

Plain are contiguous torch tensors on the CPU and NumPy arrays, outside of the graph, of a dtype that every transport
carries and reduces as it is. Anything else, and every refusal, takes the usual way, which does the same for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from collshim.arrays import FromTorch, like
from collshim.call import Call
from collshim.work import Work

FLOATS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}
INTEGERS = {torch.int64, torch.int32, torch.int8, torch.uint8}
_TORCH_DTYPES = FLOATS | INTEGERS
_NUMPY_DTYPES = {np.dtype(name) for name in ("f8", "f4", "f2", "i8", "i4", "i1", "u1")}
_STRIDED = torch.strided


class Asker(Protocol):
    """Who asks: what the short way needs of a communicator."""

    timeout: float

    def join_graph(self, call: Call, given: Any, pending: Any, result: Any) -> Any:
        """The result, a part of the graph where some rank needs a gradient."""
        ...


class Express(Protocol):
    """A group's short way: a posted work, or None where the usual way has to be taken; nothing is refused here.

    It may be taken when ``queue`` and ``unseen`` are empty.
    """

    @property
    def queue(self) -> Sequence[Any]:
        """Calls that must set out first."""
        ...

    @property
    def unseen(self) -> Sequence[Any]:
        """Calls whose failure the wait of the next one may have to raise."""
        ...

    def all_reduce(self, asker: Asker, array: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Communicator.all_reduce``."""

    def broadcast(self, asker: Asker, array: Any, root: Any, out: Any) -> Work[Any] | None:
        """See ``Communicator.broadcast``."""

    def all_gather(self, asker: Asker, array: Any, out: Any) -> Work[Any] | None:
        """See ``Communicator.all_gather``."""

    def reduce_scatter(self, asker: Asker, parts: Any, op: Any, out: Any) -> Work[Any] | None:
        """See ``Communicator.reduce_scatter``."""

    def all_to_all(self, asker: Asker, parts: Any, out: Any) -> Work[Any] | None:
        """See ``Communicator.all_to_all``."""


def plain(array: Any) -> Tensor | None:
    """The array as a tensor where it is plain."""
    if type(array) is np.ndarray:
        flags = array.flags
        fits = flags.c_contiguous and flags.writeable and array.dtype in _NUMPY_DTYPES
        return torch.from_numpy(array) if fits else None
    if type(array) is not Tensor or array.dtype not in _TORCH_DTYPES or array.layout is not _STRIDED:
        return None
    if (array.requires_grad and torch.is_grad_enabled()) or array.is_neg() or not array.is_cpu or array.is_nested:
        return None
    return array if array.is_contiguous() else None


def plain_parts(parts: Any, size: int) -> Tensor | None:
    """Rank-leading parts as a tensor where they are plain."""
    tensor = plain(parts)
    return tensor if tensor is not None and (shape := tensor.shape) and shape[0] == size else None


def plain_target(array: Any, tensor: Tensor, out: Any, shape: Any) -> Tensor | None:
    """``out`` as a tensor where it is plain, fits, is of the input's kind, and lies apart from the input."""
    if type(out) is not type(array):
        return None
    target = _like_plain(out) if type(out) is Tensor else plain(out)
    if target is None or target.dtype is not tensor.dtype or out.shape != shape:
        return None
    start, other = target.data_ptr(), tensor.data_ptr()
    return target if start + target.nbytes <= other or other + tensor.nbytes <= start else None


def _like_plain(out: Tensor) -> Tensor | None:
    """A tensor that is plain where its dtype is that of a plain one."""
    if not out.is_cpu or out.layout is not _STRIDED or out.is_neg() or out.requires_grad or out.is_nested:
        return None
    return out if out.is_contiguous() else None


def kind_of_fresh(array: Any) -> FromTorch | None:
    """How a fresh result becomes an array of the caller's kind; None where it is one."""
    return None if type(array) is Tensor else like(array)
