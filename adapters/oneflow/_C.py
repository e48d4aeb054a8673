"""``oneflow._C``: the functions beneath OneFlow's Python, those that programs and tests call. Signatures of 0.9.0.

What is not written here is torch's, or ``torch.nn.functional``'s, of the same name.
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
from collshim.oneflow.creation import oneflows
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
    """What ``call`` writes into ``tensor`` itself, or into a copy of it; returned."""
    target = tensor if inplace else tensor.detach().clone()
    call(target)
    return target


def local_all_reduce(x: Any, inplace: bool = False) -> Any:
    """The sum of all ranks' ``x``: a new tensor, or with ``inplace`` ``x`` itself. No gradient."""
    return _in_place(comm.all_reduce, x, inplace)


def local_reduce(x: Any, *, dst: int = 0, inplace: bool = False) -> Any:
    """On rank ``dst`` the sum of all ranks' ``x``, on the others ``x``; a new tensor, or ``x`` itself. No gradient."""
    return _in_place(lambda target: comm.reduce(target, dst), x, inplace)


def comm_broadcast(inputs: Any, *, src_rank: int = 0, inplace: bool = False) -> Any:
    """Rank ``src_rank``'s tensor, or tensors of a list, on every rank: new ones, or ``inputs`` itself. No gradient.

    Args:
        inputs: a tensor, or a list of tensors, whose results are a tuple.
        src_rank: whose values all get.
        inplace: whether the tensors' own memory is written.
    """
    if not isinstance(inputs, list | tuple):
        return _in_place(lambda target: comm.broadcast(target, src_rank), inputs, inplace)
    targets = list(inputs) if inplace else [entry.detach().clone() for entry in inputs]
    if targets:
        memory = [plain(target.detach()) for target in targets]
        world_communicator().broadcast_coalesced(memory, src_rank, out=memory).wait()
    return tuple(targets)


def local_all_gather(output: Array, input: Array) -> None:
    """As ``comm.all_gather_into_tensor``."""
    comm.all_gather_into_tensor(output, input)


def local_reduce_scatter(output: Array, input: Array) -> None:
    """As ``comm.reduce_scatter_tensor``."""
    comm.reduce_scatter_tensor(output, input)


def softmax_cross_entropy(prediction: Any, label: Any) -> Any:
    """The cross entropy of each row of ``prediction`` with a distribution, ``label``; not reduced."""
    return adopt(-(label * functional.log_softmax(prediction, -1)).sum(-1))


def sparse_softmax_cross_entropy(logits: Any, label: Any) -> Any:
    """The cross entropy of each row of ``logits`` with a class number; not reduced."""
    return adopt(functional.cross_entropy(logits, label.long(), reduction="none"))


def select_top_n(inputs: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The first ``n`` tensors; a backward from them gives the others gradients of zeros."""
    first = tuple(inputs[:n])
    others = [tensor for tensor in inputs[n:] if tensor.requires_grad]
    if not others or not torch.is_grad_enabled():
        return first
    nothing = sum((tensor * 0).sum() for tensor in others)
    return tuple(adopt(tensor + nothing) for tensor in first)


def slice_view_1d_contiguous(input: Any, start: int, end: int) -> Any:
    """A view of the elements from ``start`` to before ``end``."""
    return adopt(input[start:end])


def stream_touch(inputs: Sequence[Any]) -> None:
    """Nothing: the order between streams is kept."""


def identity(input: Any) -> Any:
    """A copy."""
    return adopt(input.clone())


def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """``input`` on another device or in another dtype."""
    return adopt(input).to(*args, **kwargs)


_RENAMED = {
    "batch_matmul": torch.bmm,
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
globals().update({name: oneflows(name, function) for name, function in _RENAMED.items()})

__getattr__ = fall_through.names(__name__, [torch, functional], adapt=oneflows)
