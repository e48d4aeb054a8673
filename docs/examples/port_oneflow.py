"""A training with OneFlow's names, whose port to torch is port_torch.py: collshim run -n 2 port_oneflow.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.oneflow as flow
from collshim.oneflow.nn.parallel import DistributedDataParallel

STEPS, ROWS = 12, 16


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all steps, and the class of each."""
    points = np.random.default_rng(0).normal(size=(STEPS * ROWS, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int64)


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first values, which are the same in every run."""
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def train(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[Any], dict[str, Any]]:
    """Train on this rank's rows of each step; return the losses over all ranks, and the last gradients."""
    size = flow.env.get_world_size()
    points, labels = (flow.tensor(part[flow.env.get_rank() :: size]) for part in batch)
    net = flow.nn.Sequential(flow.nn.Linear(2, 8), flow.nn.ReLU(), flow.nn.Linear(8, 2))
    for parameter in net.parameters():
        parameter.data.copy_(flow.tensor(initial(tuple(parameter.shape))))
    model = DistributedDataParallel(net)  # averages the gradients
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x, y in zip(flow.chunk(points, STEPS), flow.chunk(labels, STEPS), strict=True):
        optimizer.zero_grad()
        loss = flow.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        flow.comm.all_reduce(mean)  # a sum
        losses.append(mean / size)
    return losses, {name: parameter.grad for name, parameter in net.named_parameters()}


if __name__ == "__main__":
    found, _ = train(batch())
    if flow.env.get_rank() == 0:
        print([round(float(loss), 5) for loss in found])
