"""ZeroRedundancyOptimizer: alone, in DDP's hooks, and inside the backward pass; and averaging of parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks, post_localSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from tests.upstream.programs.ranks import run, show, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, train, trained_alone

Figures = dict[str, object]


def sharded(rank: int, size: int) -> Figures:
    """Shard Adam's state; gather it on rank 0."""
    model = DistributedDataParallel(small_model())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(3)])
    optimizer.consolidate_state_dict(to=0)
    assert_same(model.module, trained_alone(size, optimizer=torch.optim.Adam), 1e-4)
    state = len(optimizer.state_dict()["state"]) if rank == 0 else 0
    assert state == (4 if rank == 0 else 0)
    return {"losses": losses, "weights": weights(model), "state": state}


def overlapped(rank: int, size: int) -> Figures:
    """Let the optimizer's steps overlap with the backward pass."""
    model = DistributedDataParallel(small_model(), static_graph=True, gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    hook = ddp_zero_hook.hook_with_zero_step(default_hooks.allreduce_hook, model, optimizer, shard_buckets=False)
    model.register_comm_hook(None, hook)
    return {"losses": _steps(model, optimizer, rank, size), "weights": weights(model)}


def interleaved(rank: int, size: int) -> Figures:
    """Let each rank's steps overlap with the reduction of the next bucket."""
    model = DistributedDataParallel(small_model(), static_graph=True, gradient_as_bucket_view=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    hook = ddp_zero_hook.hook_with_zero_step_interleaved(default_hooks.allreduce_hook, model, optimizer)
    model.register_comm_hook(None, hook)
    return {"losses": _steps(model, optimizer, rank, size), "weights": weights(model)}


def _steps(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, size: int) -> list[float]:
    """Take steps whose first two only build the buckets."""
    losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(6)])
    assert losses[0] != losses[-1]
    return losses


def post_local_sgd(rank: int, size: int) -> Figures:
    """Train each rank alone after two steps, and average the models each second step."""
    model = DistributedDataParallel(small_model())
    pair, _ = dist.new_subgroups(2)
    state = post_localSGD_hook.PostLocalSGDState(None, pair, start_localSGD_iter=2)
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), averager)
    losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(7)])
    return {"losses": losses, "weights": weights(model)}


def hierarchical(rank: int, size: int) -> Figures:
    """Average in pairs each second step, and over all ranks each fourth."""
    model = small_model()
    averager = HierarchicalModelAverager(OrderedDict([(2, 2), (4, size)]) if size > 2 else OrderedDict([(2, size)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(4):
        losses += train(model, optimizer, [own_batch(step, rank, size)])
        averager.average_parameters(model.parameters())
    return {"losses": losses, "weights": weights(model)}


USES: dict[str, Callable[[int, int], Figures]] = {
    "sharded": sharded,
    "overlapped": overlapped,
    "interleaved": interleaved,
    "post-local-sgd": post_local_sgd,
    "hierarchical": hierarchical,
}


def main(rank: int, size: int, *names: str) -> None:
    """Train in each way."""
    for name in names:
        show(rank, name=name, **USES[name](rank, size))


if __name__ == "__main__":
    run(main)
