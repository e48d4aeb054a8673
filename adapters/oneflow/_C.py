"""``oneflow._C``: the functions under OneFlow's Python API that programs and tests call. Signatures of 0.9.0.

Names that are not defined here are those of torch, or ``torch.nn.functional``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from collshim.adapting import fall_through
from collshim.arrays import Array
from collshim.oneflow import comm
from collshim.oneflow.comm.arguments import world_communicator
from collshim.oneflow.creation import adapt
from collshim.oneflow.creation import tensor as tensor
from collshim.oneflow.framework.tensor import adopt, plain
from collshim.oneflow.functions import METHODS
from collshim.oneflow.functions import broadcast_like as broadcast_like
from collshim.oneflow.functions import cast as cast
from collshim.oneflow.functions import scatter as scatter
from collshim.oneflow.nn.functional import log_softmax as log_softmax
from collshim.oneflow.nn.functional import one_hot as one_hot
from collshim.oneflow.nn.functional import quick_gelu as quick_gelu
from collshim.oneflow.nn.functional import softmax as softmax

send = comm.send
recv = comm.recv


def _in_place(call: Callable[[Any], None], tensor: Any, inplace: bool) -> Any:
    """Call ``call`` on the memory of ``tensor``, also of a leaf, or on a copy of it; return that tensor."""
    target = tensor if inplace else tensor.detach().clone()
    call(target.detach())
    return target


def local_all_reduce(x: Any, inplace: bool = False) -> Any:
    """Return the sum of all ranks' ``x``: a new tensor, or with ``inplace`` ``x`` itself. No gradient."""
    return _in_place(comm.all_reduce, x, inplace)


def local_reduce(x: Any, *, dst: int = 0, inplace: bool = True) -> Any:
    """Return the sum of all ranks' ``x`` on rank ``dst``, else ``x``: ``x`` itself, or a new tensor. No gradient."""
    return _in_place(lambda target: comm.reduce(target, dst), x, inplace)


def comm_broadcast(inputs: Any, *, src_rank: int = 0, inplace: bool = True) -> Any:
    """Return rank ``src_rank``'s tensor or tensors on every rank: in ``inputs``, or copies. No gradient.

    Args:
        inputs: a tensor, or a list of tensors, for which the result is a tuple.
        src_rank: the rank whose values all ranks get.
        inplace: whether to write into the tensors' own memory, as by default.
    """
    if not isinstance(inputs, list | tuple):
        return _in_place(lambda target: comm.broadcast(target, src_rank), inputs, inplace)
    targets = list(inputs) if inplace else [entry.detach().clone() for entry in inputs]
    if targets:
        memory = [plain(target.detach()) for target in targets]
        world_communicator().broadcast_coalesced(memory, src_rank, out=memory).wait()
    return tuple(targets)


def local_all_gather(output: Array, input: Array) -> None:
    """Call ``comm.all_gather_into_tensor``."""
    comm.all_gather_into_tensor(output, input)


def local_reduce_scatter(output: Array, input: Array) -> None:
    """Call ``comm.reduce_scatter_tensor``."""
    comm.reduce_scatter_tensor(output, input)


def matmul(input: Any, other: Any, *, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Any:
    """Return ``alpha`` times the product of two matrices, or of two batches, (..., m, k) and (..., k, n).

    With ``transpose_a`` or ``transpose_b`` the last two dimensions of that one are exchanged first.
    """
    first = input.transpose(-2, -1) if transpose_a else input
    product = torch.matmul(first, other.transpose(-2, -1) if transpose_b else other)
    return adopt(product if alpha == 1 else product * alpha)


batch_matmul = matmul


def softmax_cross_entropy(prediction: Any, label: Any) -> Any:
    """Return the cross entropy of each row of ``prediction`` with a distribution, ``label``; not reduced."""
    return adopt(-(label * functional.log_softmax(prediction, -1)).sum(-1))


def sparse_softmax_cross_entropy(logits: Any, label: Any) -> Any:
    """Return the cross entropy of each row of ``logits`` with a class number; not reduced."""
    return adopt(functional.cross_entropy(logits, label.long(), reduction="none"))


def select_top_n(inputs: Sequence[Any], n: int) -> tuple[Any, ...]:
    """Return the first ``n`` tensors; a backward from them gives the others zero gradients."""
    first = tuple(inputs[:n])
    others = [tensor for tensor in inputs[n:] if tensor.requires_grad]
    if not others or not torch.is_grad_enabled():
        return first
    nothing = sum((tensor * 0).sum() for tensor in others)
    return tuple(adopt(tensor + nothing) for tensor in first)


def slice_view_1d_contiguous(input: Any, start: int, end: int) -> Any:
    """Return a view of the elements from ``start`` up to, but not including, ``end``."""
    return adopt(input[start:end])


def stream_touch(inputs: Sequence[Any]) -> None:
    """Do nothing: the order between streams is kept."""


def identity(input: Any) -> Any:
    """Return a copy."""
    return adopt(input.clone())


def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``input`` on another device or in another dtype."""
    return adopt(input).to(*args, **kwargs)


_RENAMED = {
    "broadcast_equal": torch.eq,
    "dim_gather": torch.gather,
    "inv": torch.inverse,
    "linalg_cross": torch.linalg.cross,
    "matrix_vector_product": torch.mv,
    "reduce_all": torch.all,
    "reduce_any": torch.any,
    "reduce_mean": torch.mean,
    "reduce_nansum": torch.nansum,
    "reduce_prod": torch.prod,
    "reduce_sum": torch.sum,
}
globals().update(METHODS)
globals().update({name: adapt(name, function) for name, function in _RENAMED.items()})

__getattr__ = fall_through.names(__name__, [torch, functional], adapt=adapt)
