"""Data-parallel training with MegEngine's names: python docs/examples/megengine_data_parallel.py.

To run it on MegEngine itself, remove ``collshim.`` from the imports.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.megengine as mge
import collshim.megengine.autodiff as autodiff
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
import collshim.megengine.module as M
import collshim.megengine.optimizer as optim


def samples(count: int) -> tuple[Any, Any]:
    """Return points of the plane, and whether each is right of a curve."""
    points = np.random.default_rng(7).uniform(-1, 1, size=(count, 2)).astype("float32")
    return points, (points[:, 0] > points[:, 1] ** 2 - 0.3).astype("int32")


class Net(M.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = M.Linear(2, 16)
        self.out = M.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        """Return two logits for each point."""
        return self.out(F.tanh(self.hidden(x)))


def train(epochs: int) -> list[float]:
    """Return the loss of each epoch over the points of all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    net = Net()
    dist.bcast_list_(net.parameters())  # each rank has random weights: start from rank 0's
    manager = autodiff.GradManager()
    manager.attach(net.parameters(), callbacks=[dist.make_allreduce_cb("mean")])
    optimizer = optim.SGD(net.parameters(), lr=0.5, momentum=0.9)

    points, labels = samples(256)
    own = mge.tensor(points[rank::size]), mge.tensor(labels[rank::size])
    losses = []
    for _ in range(epochs):
        with manager:
            loss = F.nn.cross_entropy(net(own[0]), own[1])
            manager.backward(loss)
        optimizer.step().clear_grad()
        losses.append((F.distributed.all_reduce_sum(loss) / size).item())
    return losses


if __name__ == "__main__":
    results = dist.launcher(train, n_gpus=2)(40)
    print(f"loss {results[0][0]:.3f} at first, {results[0][-1]:.3f} at last, the same on every rank")
    assert results[0] == results[1]
    assert results[0][-1] < results[0][0] / 3
