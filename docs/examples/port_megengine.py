"""A training with MegEngine's names, whose port to torch is port_torch.py: python port_megengine.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim
import collshim.megengine as mge
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
import collshim.megengine.module as M
from collshim.megengine.autodiff import GradManager
from collshim.megengine.optimizer import SGD

STEPS, ROWS = 12, 16


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return the points of all steps, and the class of each."""
    points = np.random.default_rng(0).normal(size=(STEPS * ROWS, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int32)


def initial(shape: tuple[int, ...]) -> np.ndarray:
    """Return a parameter's first values, which are the same in every run."""
    return np.random.default_rng(sum(shape)).normal(scale=0.5, size=shape).astype(np.float32)


def train(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[Any], dict[str, Any]]:
    """Train on this rank's rows of each step; return the losses over all ranks, and the last gradients."""
    size = dist.get_world_size()
    points, labels = (part[dist.get_rank() :: size].reshape(STEPS, ROWS // size, *part.shape[1:]) for part in batch)
    net = M.Sequential(M.Linear(2, 8), M.ReLU(), M.Linear(8, 2))
    for parameter in net.parameters():
        parameter[...] = mge.tensor(initial(parameter.shape))
    manager = GradManager()
    manager.attach(net.parameters(), callbacks=[dist.make_allreduce_cb("mean")] if size > 1 else None)
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses, gradients = [], {}
    for x, y in zip(points, labels, strict=True):
        with manager:
            loss = F.nn.cross_entropy(net(mge.tensor(x)), mge.tensor(y))
            manager.backward(loss)
        gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
        optimizer.step().clear_grad()
        losses.append(F.distributed.all_reduce_sum(loss) / size if size > 1 else loss)
    return losses, gradients


def step(batch: tuple[np.ndarray, np.ndarray]) -> tuple[list[Any], dict[str, Any]]:
    """Train on ranks that the launcher has not started; MegEngine has no group of one rank."""
    world = collshim.current()
    if world.size > 1:
        dist.init_process_group("localhost", 8000, world.size, world.rank, device=world.rank)
    return train(batch)


def main() -> None:
    """Train, and print the losses on rank 0."""
    losses, _ = train(batch())
    if dist.get_rank() == 0:
        print([round(float(loss.numpy()), 5) for loss in losses])


if __name__ == "__main__":
    dist.launcher(main, n_gpus=2)()
