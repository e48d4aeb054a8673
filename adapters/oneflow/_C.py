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
from collshim.oneflow.functions import matmul as matmul
from collshim.oneflow.functions import scatter as scatter
from collshim.oneflow.nn.functional import log_softmax as log_softmax
from collshim.oneflow.nn.functional import one_hot as one_hot
from collshim.oneflow.nn.functional import quick_gelu as quick_gelu
from collshim.oneflow.nn.functional import softmax as softmax

send = comm.send
recv = comm.recv


def _in_place(call: Callable[[Any], None], tensor: Any, inplace: bool) -> Any:
    """Call ``call`` on ``tensor``, even if it is a leaf, or on a copy; return the tensor that ``call`` wrote to."""
    target = tensor if inplace else tensor.detach().clone()
    call(target.detach())
    return target


def local_all_reduce(x: Any, inplace: bool = False) -> Any:
    """Return the sum of all ranks' ``x`` on every rank: a new tensor, or ``x`` itself if ``inplace``. No gradient."""
    return _in_place(comm.all_reduce, x, inplace)


def local_reduce(x: Any, *, dst: int = 0, inplace: bool = True) -> Any:
    """Return the sum of all ranks' ``x`` on rank ``dst``, and the values of ``x`` on the other ranks.

    The result is ``x`` itself if ``inplace``, and otherwise a new tensor. It has no gradient.
    """
    return _in_place(lambda target: comm.reduce(target, dst), x, inplace)


def comm_broadcast(inputs: Any, *, src_rank: int = 0, inplace: bool = True) -> Any:
    """Return rank ``src_rank``'s values on every rank: in ``inputs`` itself, or in copies. No gradient.

    Args:
        inputs: a tensor, or a list of tensors, for which the result is a tuple.
        src_rank: the rank whose values every rank holds afterwards.
        inplace: whether to write into the tensors' own memory (the default).
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


batch_matmul = matmul


def gather(x: Any, indices: Any, axis: int) -> Any:
    """Return the slices of ``x`` along ``axis`` at ``indices``; torch's ``gather`` is named ``dim_gather`` here.

    In the result's shape, the shape of ``indices`` replaces that axis.
    """
    axis %= x.ndim
    if axis == 0 and x.ndim == 2:
        return adopt(functional.embedding(indices, x))
    found = torch.index_select(x, axis, indices.flatten())
    return adopt(found.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def layer_norm(x: Any, begin_norm_axis: int, begin_params_axis: int, epsilon: float) -> Any:
    """Return ``x`` with mean 0 and variance 1 over the axes from ``begin_norm_axis`` on."""
    return adopt(functional.layer_norm(x, x.shape[begin_norm_axis:], eps=epsilon))


def layer_norm_affine(
    x: Any, gamma: Any, beta: Any, begin_norm_axis: int, begin_params_axis: int, epsilon: float
) -> Any:
    """Return ``layer_norm(x) * gamma + beta``; both have the shape of ``x`` from ``begin_params_axis`` on."""
    return layer_norm(x, begin_norm_axis, begin_params_axis, epsilon) * gamma + beta


def softmax_cross_entropy(prediction: Any, label: Any) -> Any:
    """Return the cross entropy of each row of ``prediction`` with a distribution, ``label``; not reduced."""
    return adopt(-(label * functional.log_softmax(prediction, -1)).sum(-1))


def sparse_softmax_cross_entropy(logits: Any, label: Any) -> Any:
    """Return the cross entropy of each row of ``logits`` with a class number; not reduced."""
    return adopt(functional.cross_entropy(logits, label.long(), reduction="none"))


def select_top_n(inputs: Sequence[Any], n: int) -> tuple[Any, ...]:
    """Return the first ``n`` tensors; in their backward pass, the other tensors receive zero gradients."""
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
    """Do nothing: the order between streams is kept anyway."""


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
