"""``(output, handle)``: how ``comm_func`` returns what may not be complete yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, like
from collshim.layout import Parts
from collshim.work import Work


class CommHandle:
    """What ``async_op=True``, isend and irecv return: an output beside it is complete after ``wait``."""

    def __init__(self, work: Work[Any] | None = None) -> None:
        self._work = work

    def wait(self) -> None:
        """The output is complete; on CUDA, for what this stream does next. A handle without work returns."""
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
    """Post ``tensors``; the output through ``view``, in the kind of ``array``, and a handle or None.

    An asynchronous output is returned before it is filled, so it is allocated here; so is one with ``fixed_shapes``,
    which the senders must match. A differentiable output cannot be: the engine makes it, and it
    is waited for.
    """
    if differentiated(tensors) or not (async_op or fixed_shapes):
        work = post(None).then(view)
        output = work.wait()
    else:
        out = allocate()
        work, output = post(out), view(out)
    if not async_op:
        work.wait()
        return in_kind_of(array, output), None
    return awaited(in_kind_of(array, output), work), CommHandle(work)


def awaited(result: Any, work: Work[Any]) -> Any:
    """The result, of which MindSpore's own tensors wait for ``work`` when they are read."""
    for array in result if isinstance(result, tuple) else (result,):
        if hasattr(type(array), "_work"):
            array._work = work
    return result


def differentiated(tensors: Sequence[Tensor]) -> bool:
    """Whether a gradient will flow to one of them."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def in_kind_of(array: Array, result: Any) -> Any:
    """A torch result, or a tuple of them, as the kind of ``array``: the same memory."""
    kind = like(array)
    if kind is None:
        return result
    return tuple(map(kind, result)) if isinstance(result, tuple) else kind(result)
