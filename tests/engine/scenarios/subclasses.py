"""Collectives of a tensor class whose attributes are another framework's: each rank's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from collshim.arrays import stripped
from tests.engine.worlds import world


class Foreign(torch.Tensor):
    """A tensor with a NumPy dtype, a string as device and a tuple as shape; operations return the class again."""

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return np.dtype(str(stripped(self).dtype).removeprefix("torch."))

    @property
    def device(self) -> Any:  # type: ignore[override]
        return "xpux"

    @property
    def shape(self) -> Any:  # type: ignore[override]
        return tuple(stripped(self).shape)


def foreign(values: Any) -> Foreign:
    return torch.tensor(values, dtype=torch.float32).as_subclass(Foreign)


def forms() -> dict[str, Any]:
    """Return the class and the numbers of each call's result."""
    comm, rank = world(), world().rank
    own, both = foreign([rank + 1.0]), foreign([[1.0], [2.0]])
    results = {
        "all_reduce": comm.all_reduce(own),
        "all_reduce max": comm.all_reduce(own, "max"),
        "reduce": comm.reduce(own, 1),
        "broadcast": comm.broadcast(own, 1),
        "all_gather": comm.all_gather(own),
        "gather": comm.gather(own),
        "scatter": comm.scatter(both if rank == 0 else None, like=own),
        "reduce_scatter": comm.reduce_scatter(both),
        "all_to_all": comm.all_to_all(both),
        "all_to_all list": comm.all_to_all([own, own], shapes=[(1,), (1,)]),
        "all_reduce_coalesced": comm.all_reduce_coalesced([own, both]),
        "ring": _ring(own),
    }
    return {name: _told(work.wait()) for name, work in results.items()}


def _ring(own: Foreign) -> Any:
    comm, peer = world(), 1 - world().rank
    sent = comm.send(own, peer)
    received = comm.recv(peer, like=own)
    sent.free()
    return received


def _told(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [_told(item) for item in result]
    return None if result is None else (type(result).__name__, stripped(result).tolist())


def places() -> list[Any]:
    """Return the contents of the caller's outputs: one, a list, and the input itself."""
    comm = world()
    own = foreign([comm.rank + 1.0])
    into, listed, whole = foreign([0.0]), [foreign([0.0]), foreign([0.0])], foreign([[0.0], [0.0]])
    same = comm.all_reduce(own, out=into).wait() is into
    comm.all_gather(own, out=listed).wait()
    comm.all_gather(own, out=whole).wait()
    comm.all_reduce_coalesced([own], out=[own]).wait()
    return [same, _told(into), _told(listed), _told(whole), _told(own)]


def gradients() -> list[Any]:
    """Return the class of a result, and the gradients of sums, gathers and extremes by each rank's input."""
    comm, found = world(), list[Any]()
    calls: list[Callable[[Any], Any]] = [comm.all_reduce, comm.all_gather, lambda x: comm.all_reduce(x, "max")]
    for call in calls:
        own = foreign([comm.rank + 1.0]).requires_grad_()
        result: Any = call(own).wait()
        torch.autograd.backward(stripped((result * 3).sum()))
        found += [type(result).__name__, stripped(own.grad).tolist() if own.grad is not None else None]
    return found


def parameter() -> str:
    return type(world().all_reduce(torch.nn.Parameter(torch.ones(2))).wait()).__name__
