"""The port of port_mindspore.py and its like to torch: torchrun --nproc-per-node 2 port_torch.py."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, ROWS = 12, 16


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all steps, and the class of each."""
    points = np.random.default_rng(0).normal(size=(STEPS * ROWS, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int64)


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first values, which are the same in every run."""
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def train(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[torch.Tensor], dict[str, torch.Tensor | None]]:
    """Train on this rank's rows of each step; return the losses over all ranks, and the last gradients."""
    points, labels = (torch.from_numpy(part[dist.get_rank() :: dist.get_world_size()]) for part in batch)
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(initial(tuple(parameter.shape))))
    model = DistributedDataParallel(net)  # averages the gradients
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x, y in zip(points.chunk(STEPS), labels.chunk(STEPS), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        losses.append(mean / dist.get_world_size())
    return losses, {name: parameter.grad for name, parameter in net.named_parameters()}


if __name__ == "__main__":
    dist.init_process_group("gloo")
    found, _ = train(batch())
    if dist.get_rank() == 0:
        print([round(float(loss), 5) for loss in found])
    dist.destroy_process_group()
