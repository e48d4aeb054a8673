"""DistributedDataParallel's own modes: joins, static graphs, unused parameters, no_sync, bucket views, buffers."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from tests.upstream.programs.ranks import run_named, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, train, trained_alone


class Branches(nn.Module):
    """A model of which each rank uses one branch."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.branches = nn.ModuleList(nn.Linear(6, 3) for _ in range(4))
        self.unused = nn.Linear(6, 3)

    def forward(self, inputs: Tensor, branch: int) -> Tensor:
        return torch.as_tensor(self.branches[branch](inputs))


def join(rank: int, size: int) -> list[float]:
    """Give each rank another number of batches."""
    model = DistributedDataParallel(small_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join():
        losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(2 + rank)])
    assert len(losses) == 2 + rank
    return weights(model)


def join_throws(rank: int, size: int) -> list[float]:
    """Raise on every rank as soon as one has no more inputs."""
    model = DistributedDataParallel(small_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    told = ""
    try:
        with model.join(throw_on_early_termination=True):
            train(model, optimizer, [own_batch(step, rank, size) for step in range(2 + rank)])
    except RuntimeError as error:
        told = str(error)
    assert "Detected" in told or "exhausted" in told, told
    return weights(model)


def static_graph(rank: int, size: int) -> list[float]:
    """Use each parameter twice in one step, which needs a static graph."""
    model = DistributedDataParallel(small_model(), static_graph=True)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, rank, size) for step in range(3)])
    assert_same(model.module, trained_alone(size))
    return weights(model)


def unused_parameters(rank: int, size: int) -> list[float]:
    """Use another branch on each rank."""
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        inputs, targets = own_batch(step, rank, size)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs, (rank + step) % 2), targets).backward()
        assert model.module.unused.weight.grad is None
        optimizer.step()
    return weights(model)


def no_sync(rank: int, size: int) -> list[float]:
    """Sum the gradients of two steps before they are averaged."""
    model = DistributedDataParallel(small_model(), bucket_cap_mb=1)
    for step in range(2):
        inputs, targets = own_batch(step, rank, size)
        if step == 0:
            with model.no_sync():
                nn.functional.mse_loss(model(inputs), targets).backward()
        else:
            nn.functional.mse_loss(model(inputs), targets).backward()
    return [float(parameter.grad.square().sum()) for parameter in model.parameters() if parameter.grad is not None]


def bucket_view(rank: int, size: int) -> list[float]:
    """Let the gradients be views of the buckets."""
    model = DistributedDataParallel(small_model(), gradient_as_bucket_view=True, bucket_cap_mb=1)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, rank, size) for step in range(3)])
    assert_same(model.module, trained_alone(size))
    return weights(model)


def buffers(rank: int, size: int) -> list[float]:
    """Broadcast the buffers of rank 0 before each forward."""
    torch.manual_seed(rank)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)))
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, rank, size) for step in range(3)])
    dist.barrier()
    return weights(model)


def join_with_zero(rank: int, size: int) -> list[float]:
    """Join a model and a sharded optimizer together."""
    model = DistributedDataParallel(small_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    with Join([model, optimizer]):
        losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(2 + rank)])
    assert len(losses) == 2 + rank
    return weights(model)


MODES: dict[str, Callable[[int, int], list[float]]] = {
    "join": join,
    "join-throws": join_throws,
    "join-with-zero": join_with_zero,
    "static-graph": static_graph,
    "unused-parameters": unused_parameters,
    "no-sync": no_sync,
    "bucket-view": bucket_view,
    "buffers": buffers,
}


if __name__ == "__main__":
    run_named(MODES)
