"""Backward through every collective, where the ranks do not tell each other who needs a gradient, and where they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, among_threads, device, values

require_model()

pytestmark = pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match:UserWarning")
"""torch's advice about time, where the leaf and the call are on two streams."""


ROOT = 1
POSTS: dict[str, Callable[[Communicator, Tensor], Work[Tensor | None]]] = {
    "broadcast": lambda comm, x: comm.broadcast(x, ROOT),
    "scatter": lambda comm, x: comm.scatter(x.expand(comm.size, -1) if comm.rank == ROOT else None, ROOT, like=x),
    "gather": lambda comm, x: comm.gather(x, ROOT),
    "reduce": lambda comm, x: comm.reduce(x, ROOT),
    "all_reduce": lambda comm, x: comm.all_reduce(x, "avg"),
    "all_reduce max": lambda comm, x: comm.all_reduce(x, "max"),
    "all_gather": lambda comm, x: comm.all_gather(x),
    "all_to_all": lambda comm, x: comm.all_to_all(x.expand(comm.size, -1)),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x.expand(comm.size, -1), "prod"),
}


def differentiated(comm: Communicator, name: str, kind: str) -> list[float] | None:
    place = device() if kind == "cuda" else torch.device(kind)
    x = (torch.arange(1.0, 5.0) + comm.rank).to(place).requires_grad_()
    side = torch.cuda.Stream() if kind == "cuda" else None
    if side is not None:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work = POSTS[name](comm, x)
        y = work.wait()
        loss = work.token if y is None else (y**2).sum() * (comm.rank + 1)
    if side is not None:
        torch.cuda.current_stream().wait_stream(side)
    assert loss is not None
    torch.autograd.backward([loss])
    return None if x.grad is None else (x.grad * 1).tolist()


@pytest.mark.parametrize("checks", [False, True, None], ids=["unchecked", "checked", "by device"])
@pytest.mark.parametrize("name", POSTS)
@pytest.mark.parametrize("size", [2, 3])
def test_gradients_are_those_of_cpu_tensors(size: int, name: str, checks: bool | None) -> None:
    found = values(among_gpus(differentiated, size, name, "cuda", setting=Setting(checks=checks, wait=10.0)))
    assert found == among_threads(differentiated, size, name, "cpu")


def sent(comm: Communicator, kind: str) -> list[float] | None:
    x = torch.arange(1.0, 5.0, device=device() if kind == "cuda" else kind).requires_grad_()
    work = comm.send(x, 1) if comm.rank == 0 else comm.recv(0, like=x)
    y = work.wait()
    loss = work.token if y is None else (y**2).sum()
    assert loss is not None
    torch.autograd.backward([loss])
    return None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("checks", [False, True, None], ids=["unchecked", "checked", "by device"])
def test_the_gradient_of_a_message_is_sent_back(checks: bool | None) -> None:
    found = values(among_gpus(sent, 2, "cuda", setting=Setting(checks=checks, wait=10.0)))
    assert found == [[2.0, 4.0, 6.0, 8.0], None]
