"""``(output, handle)``: the results of ``comm_func`` that may not be complete yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, like
from collshim.layout import Parts
from collshim.mindspore.communication.comm_func.arguments import require_flag
from collshim.work import Work


class CommHandle:
    """The handle of ``async_op=True``, isend and irecv; the output returned with it is complete after ``wait``."""

    def __init__(self, work: Work[Any] | None = None) -> None:
        self._work = work

    def wait(self) -> None:
        """Wait for the output; on CUDA, make the current stream wait. A handle without work returns at once."""
        if self._work is not None:
            self._work.wait()


def output_and_handle(
    array: Array,
    tensors: Sequence[Tensor],
    post: Callable[[Parts | None], Work[Any]],
    allocate: Callable[[], Parts],
    view: Callable[[Any], Any],
    *,
    async_op: bool,
    fixed_shapes: bool = False,
) -> tuple[Any, CommHandle | None]:
    """Post ``tensors``; return the output through ``view``, with the type of ``array``, and a handle or None.

    An asynchronous output is returned before it is filled, so this function allocates it. It also allocates outputs
    with ``fixed_shapes``, which the senders must match. It cannot allocate a differentiable output: the engine makes
    that output, and this function waits for it. Before it posts anything, it refuses an ``async_op`` that is no bool.
    """
    require_flag(async_op)
    if needs_gradient(tensors) or not (async_op or fixed_shapes):
        work = post(None).then(view)
        output = work.wait()
    else:
        out = allocate()
        work, output = post(out), view(out)
    if not async_op:
        work.wait()
        return in_kind_of(array, output), None
    return attach_work(in_kind_of(array, output), work), CommHandle(work)


def attach_work(result: Any, work: Work[Any]) -> Any:
    """Return the result; reads of MindSpore's own tensors in it wait for ``work``."""
    for array in result if isinstance(result, tuple) else (result,):
        if hasattr(type(array), "_work"):
            array._work = work
    return result


def needs_gradient(tensors: Sequence[Tensor]) -> bool:
    """Return whether a gradient will flow to one of the tensors."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def in_kind_of(array: Array, result: Any) -> Any:
    """Return a torch result, or a tuple of them, in the type of ``array``, with the same memory."""
    kind = like(array)
    if kind is None:
        return result
    return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)
