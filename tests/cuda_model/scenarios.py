"""Calls that tests of several files make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.cuda_model.ranks import device
from tests.gpu.scenarios import Post, given, results

ROWS = 64
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
"""Posts that differentiate their input: each returns the work of one collective."""


def differentiated(comm: Communicator, name: str, kind: str) -> list[float] | None:
    """Return the gradient of the input of a post, on a stream of its own if on a GPU."""
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


def tensors(found: Any) -> list[Tensor]:
    """Return all tensors of a result, however nested."""
    if isinstance(found, Tensor):
        return [found]
    return [tensor for item in found for tensor in tensors(item)] if isinstance(found, list | tuple) else []


def crossing(comm: Communicator, post: Post) -> None:
    """Post on one stream, wait on and use another, and drop; then the first one allocates again."""
    own, other = torch.cuda.Stream(), torch.cuda.Stream()
    x, parts = given(torch.float32, comm, device(), ROWS)
    torch.cuda.synchronize()
    for _ in range(2):
        with torch.cuda.stream(own):
            works = post(comm, x, parts)
        with torch.cuda.stream(other):
            found = tensors(results(works))
            seen = [tensor * 1 for tensor in found]
        shapes = [tensor.shape for tensor in found]
        del found, works
        with torch.cuda.stream(own):
            junk = [torch.full(shape, -1.0, device=device()) for shape in shapes for _ in range(3)]
        torch.cuda.synchronize()
        del junk, seen
