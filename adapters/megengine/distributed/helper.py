"""Helpers for data-parallel training and other tasks (source: MegEngine 1.13.0, ``megengine.distributed.helper``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, pairwise
from math import prod
from typing import Any, NoReturn, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from collshim import world
from collshim.arrays import Array, as_output, as_torch
from collshim.errors import ArgumentTypeError, ArgumentValueError, CollshimError, also
from collshim.megengine.core.tensor.values import Valued
from collshim.megengine.device import get_device_count
from collshim.megengine.distributed._membership import joined
from collshim.megengine.distributed._ranks import WORLD, Group, communicator
from collshim.megengine.distributed.group import group_barrier, is_distributed
from collshim.megengine.tensor import wrapped
from collshim.megengine.utils.future import Future

__all__ = [
    "AllreduceCallback",
    "TensorFuture",
    "bcast_list_",
    "get_device_count_by_fork",
    "get_offsets",
    "make_allreduce_cb",
    "pack_allreduce_split",
    "param_pack_concat",
    "param_pack_split",
    "synchronized",
]

P = ParamSpec("P")
R = TypeVar("R")

PACK_BYTES = 10 << 20
"""The largest number of bytes of gradients that are reduced together."""


def bcast_list_(inps: Iterable[Array], group: Group = WORLD) -> None:
    """Copy the root's arrays into those of every rank, in place; all ranks of ``group`` pass arrays of the same shapes.

    Parameters that require gradients are overwritten too. An empty list is accepted even before ``init_process_group``.

    Raises:
        AssertionError: ``init_process_group`` was not called, or ``group`` is not a ``Group``.
        TypeError: ``inps`` is not iterable, or holds an object that is not an array.
        ArgumentValueError: an array is not writable.
    """
    if not isinstance(inps, Iterable):
        raise ArgumentTypeError(f"bcast_list_: inps is a {type(inps).__name__}, should be a list of arrays")
    arrays = list(inps)
    if not arrays:
        return
    comm = communicator(group)
    targets = [_written(inp) for inp in arrays]  # all are checked before the first is sent
    for work in [comm.broadcast(target, root=0, out=target) for target in targets]:
        work.wait()
    for inp, target in zip(arrays, targets, strict=True):
        if isinstance(inp, Valued):
            inp._value = target


def _written(inp: Any) -> Tensor:
    """Return the output for a broadcast; for a MegEngine tensor it is a copy, which then becomes the tensor's value."""
    if isinstance(inp, Valued):
        return inp._value.detach().clone(memory_format=torch.contiguous_format)
    return as_output(inp, what="bcast_list_: inps").detach()


def synchronized(func: Callable[P, R]) -> Callable[P, R]:
    """Make ``func`` return only after every rank has called it; before ``init_process_group`` it does not wait."""

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        result = func(*args, **kwargs)
        if is_distributed():
            group_barrier()
        return result

    return wrapper


def get_device_count_by_fork(device_type: str) -> int:
    """Return ``device.get_device_count(device_type)``; this is the name from before MegEngine 1.5."""
    return get_device_count(device_type)


def get_offsets(shapes: Iterable[Sequence[int]]) -> list[int]:
    """Return where arrays of these shapes begin and end if concatenated: ``[begin, end, begin, end, ...]``.

    >>> get_offsets([(1,), (3, 3), ()])
    [0, 1, 1, 10, 10, 11]
    """
    ends = list(accumulate((prod(shape) for shape in shapes), initial=0))
    return list(chain.from_iterable(pairwise(ends)))


def param_pack_concat(inps: Sequence[Array], offsets: Array, offsets_val: Sequence[int]) -> Any:
    """Concatenate the arrays into one flat tensor; the offsets are those of ``get_offsets``, and are not used."""
    whole = torch.cat([_read(inp).reshape(-1) for inp in inps])
    return _as_kind_of(inps[0], whole)


def param_pack_split(inp: Array, offsets: Sequence[int], shapes: Sequence[Sequence[int]]) -> tuple[Any, ...]:
    """Return views of a flat array with these shapes at ``offsets``; for the shape ``()``, the view is ``(1,)``."""
    flat = _read(inp)
    places = zip(offsets[::2], offsets[1::2], shapes, strict=True)
    return tuple(_as_kind_of(inp, flat[begin:end].view(tuple(shape) or (1,))) for begin, end, shape in places)


def _read(array: Any) -> Tensor:
    return array._value if isinstance(array, Valued) else as_torch(array)


def _as_kind_of(array: Any, result: Tensor) -> Any:
    """Return a result as a MegEngine tensor if ``array`` is one, and as a torch tensor otherwise."""
    return wrapped(result, array._device) if isinstance(array, Valued) else result


def pack_allreduce_split(
    pack_list: Sequence[Array], shapes: Sequence[Sequence[int]], group: Group, reduce_method: str
) -> tuple[Any, ...]:
    """Reduce arrays with the same dtype over the ranks of ``group`` in one call.

    Args:
        pack_list: the arrays; their number and shapes are the same on every rank.
        shapes: the shapes of the arrays.
        group: the ranks that take part.
        reduce_method: ``"sum"``, or ``"mean"``, which divides the sum by the group's size.

    Returns:
        The reduced arrays, in order.
    """
    offsets = get_offsets(shapes)
    pack = _read(param_pack_concat(pack_list, offsets, offsets))
    total = communicator(group).all_reduce(pack).wait()
    if reduce_method == "mean":
        total = total / group.size
    return param_pack_split(_as_kind_of(pack_list[0], total), offsets, shapes)


class TensorFuture(Future):
    """A tensor that is not available yet.

    Args:
        ack: whether ``set`` returns only after ``get`` has been called.
    """

    def device(self) -> NoReturn:
        """Raise RuntimeError, because the device is unknown."""
        raise _not_ready("device")

    def numpy(self) -> NoReturn:
        """Raise RuntimeError, because the value is unknown."""
        raise _not_ready("numpy")

    def shape(self) -> NoReturn:
        """Raise RuntimeError, because the shape is unknown."""
        raise _not_ready("shape")

    def dtype(self) -> NoReturn:
        """Raise RuntimeError, because the dtype is unknown."""
        raise _not_ready("dtype")


class AllreduceCallback:
    """A callback for ``GradManager.attach`` that reduces gradients over the ranks.

    Gradients with the same dtype are reduced together, in the order in which their tensors were attached. This order
    must be the same on every rank. Afterwards each tensor's ``grad`` holds the reduction of all ranks' gradients.

    Args:
        reduce_method: ``"sum"`` or ``"mean"``, in upper or lower case.
        group: the ranks that take part.
        backend: only a name, see ``init_process_group``.

    Raises:
        AssertionError: ``reduce_method`` is unknown, or ``init_process_group`` was not called and ``backend`` is None.

    >>> manager.attach(weights, callbacks=make_allreduce_cb("mean"))  # doctest: +SKIP
    """

    def __init__(self, reduce_method: str, group: Group = WORLD, backend: str | None = None) -> None:
        self._reduce_method = str(reduce_method).lower()
        if self._reduce_method not in ("sum", "mean"):
            raise also(ArgumentValueError, AssertionError)(
                f"make_allreduce_cb: reduce_method is {reduce_method!r}, should be 'sum' or 'mean'{world.place()}"
            )
        if backend is None:
            joined()
        self._group = group
        self._waiting: WeakKeyDictionary[_Reduced, Any] = WeakKeyDictionary()

    def __call__(self, param: Any, grad: Any) -> TensorFuture:
        """Collect a gradient; return a future of the reduced gradient."""
        future = _Reduced(self._reduce)
        self._waiting[future] = grad
        return future

    def _reduce(self) -> None:
        entries = list(self._waiting.items())
        self._waiting.clear()
        for pack in _packs(entries):
            grads = [grad for _, grad in pack]
            shapes = [tuple(grad.shape) for grad in grads]
            totals = pack_allreduce_split(grads, shapes, self._group, self._reduce_method)
            for (future, grad), tensor in zip(pack, totals, strict=True):
                future.set(tensor.reshape(grad.shape))


make_allreduce_cb = AllreduceCallback


class _Reduced(TensorFuture):
    """A gradient that is reduced together with all others collected so far, at the first ``get`` of any of them."""

    def __init__(self, reduce: Callable[[], None]) -> None:
        super().__init__(ack=False)
        self._reduce = reduce

    def get(self) -> Any:
        if not self._ready.is_set():
            self._reduce()
        return super().get()


def _packs(entries: list[tuple[_Reduced, Any]]) -> list[list[tuple[_Reduced, Any]]]:
    packs: list[list[tuple[_Reduced, Any]]] = []
    open_packs: dict[tuple[torch.dtype, torch.device], list[tuple[_Reduced, Any]]] = {}
    for future, grad in entries:
        kind = _read(grad).dtype, _read(grad).device
        pack = open_packs.setdefault(kind, [])
        if not pack:
            packs.append(pack)
        pack.append((future, grad))
        if sum(_read(member).nbytes for _, member in pack) >= PACK_BYTES:
            del open_packs[kind]
    return packs


def _not_ready(what: str) -> CollshimError:
    return also(CollshimError, RuntimeError)(
        f"TensorFuture: {what} is unknown, the tensor is not ready: call get() first"
    )
