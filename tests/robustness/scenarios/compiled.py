"""Functions with a collective, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import collshim
from collshim.mindspore import communication
from collshim.mindspore.communication import comm_func
from collshim.torch import distributed as dist
from tests.engine.worlds import Outcome, attempt, world


def _returned(x: Tensor) -> Tensor:
    result: Tensor = collshim.current().communicator.all_reduce(x * 2).wait()
    return result + 1


def _in_place(x: Tensor) -> Tensor:
    y = x * 3
    dist.all_reduce(y)
    return y.sum() + x


def _of_mindspore(x: Tensor) -> Tensor:
    gathered, _ = comm_func.all_gather_into_tensor(x.sin())
    return gathered.cos()  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "returned": _returned,
    "in place": _in_place,
    "of MindSpore": _of_mindspore,
}


class Seen(NamedTuple):
    """The observation of a rank.

    Attributes:
        alike: by function, whether it gives the same when compiled: for two inputs, and its gradient.
        whole: the outcome of a function if a graph break is an error.
    """

    alike: dict[str, tuple[bool, bool, bool]]
    whole: Outcome


def each() -> Seen:
    """Compile every function, one after the other."""
    return Seen({name: _alike(function) for name, function in FUNCTIONS.items()}, _whole(FUNCTIONS["returned"]))


def _alike(function: Callable[[Tensor], Tensor]) -> tuple[bool, bool, bool]:
    _enter()
    fast = torch.compile(function, backend="eager")
    rank = world().rank
    alike = [torch.equal(fast(x), function(x)) for x in (torch.arange(3.0) + rank, torch.arange(4.0) - rank)]
    gradients = [_gradient(one, torch.arange(3.0) + rank) for one in (fast, function)]
    return alike[0], alike[1], torch.equal(*gradients)


def _whole(function: Callable[[Tensor], Tensor]) -> Outcome:
    _enter()
    return attempt(torch.compile(function, backend="eager", fullgraph=True), torch.ones(3))


def _enter() -> None:
    torch.compiler.reset()
    communication.init()
    if not dist.is_initialized():
        dist.init_process_group()


def _gradient(function: Callable[[Tensor], Tensor], values: Tensor) -> Any:
    x = values.requires_grad_(True)
    (function(x) ** 2).sum().backward()
    found, x.grad = x.grad, None
    return found
