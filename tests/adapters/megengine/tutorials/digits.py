"""Data-parallel training as in MegEngine's tutorial: python digits.py FOLDER RANKS, with MNIST's files in FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.distributed as dist
import megengine.functional as F
import megengine.module as M
import megengine.optimizer as optim
import numpy as np
from megengine.autodiff import GradManager
from megengine.data import DataLoader, RandomSampler, SequentialSampler
from megengine.data.dataset import MNIST
from megengine.data.transform import Compose, Normalize, Pad, ToMode

BATCH = 32  # of all ranks together
CHANGES = [Normalize(mean=0.1307 * 255, std=0.3081 * 255), Pad(2), ToMode("CHW")]


class LeNet(M.Module):  # type: ignore[misc]
    """Two convolutions and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = M.Conv2d(1, 4, 5)
        self.second = M.Conv2d(4, 8, 5)
        self.pool = M.MaxPool2d(2, 2)
        self.hidden = M.Linear(8 * 5 * 5, 24)
        self.classifier = M.Linear(24, 10)

    def forward(self, x: Any) -> Any:
        """Return ten logits for each image."""
        x = self.pool(F.relu(self.first(x)))
        x = self.pool(F.relu(self.second(x)))
        return self.classifier(F.relu(self.hidden(F.flatten(x, 1))))


def prepared() -> LeNet:
    """Return the network with rank 0's weights, which are the same in every run."""
    net, numbers = LeNet(), np.random.RandomState(3)
    if dist.get_rank() == 0:
        state = net.state_dict()
        net.load_state_dict({name: numbers.normal(0, 0.1, state[name].shape).astype("float32") for name in state})
    if dist.is_distributed():
        dist.bcast_list_(net.parameters())
        dist.bcast_list_(net.buffers())
    return net


def train(folder: str) -> dict[str, list[float]]:
    """Return the mean loss of each epoch, and the accuracy on the test set, of all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    net = prepared()
    manager = GradManager()
    callbacks = [dist.make_allreduce_cb("mean")] if size > 1 else []
    manager.attach(net.parameters(), callbacks=callbacks)
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)

    dataset = MNIST(folder, train=True, download=False)
    sampler = RandomSampler(dataset, batch_size=BATCH // size, drop_last=True, seed=0)
    loader = DataLoader(dataset, sampler=sampler, transform=Compose(CHANGES))
    losses = []
    for epoch in range(3):
        total = 0.0
        for images, labels in loader:
            with manager:
                loss = F.nn.cross_entropy(net(mge.tensor(images)), mge.tensor(labels))
                manager.backward(loss)
            optimizer.step().clear_grad()
            mean = dist.functional.all_reduce_sum(loss) / size if size > 1 else loss
            total += mean.item()
        losses.append(total / len(loader))
        if rank == 0:
            mge.get_logger().info("epoch %d: loss %f", epoch, losses[-1])
            mge.save({"state_dict": net.state_dict(), "epoch": epoch}, str(Path(folder, "net.pkl")))
    dist.group_barrier()
    return {"losses": losses, "accuracy": [test(folder)]}


def test(folder: str) -> float:
    """Return the accuracy of the saved network; each rank looks at a part of the images."""
    net = LeNet()
    net.load_state_dict(mge.load(str(Path(folder, "net.pkl")))["state_dict"])
    net.eval()
    dataset = MNIST(folder, train=False, download=False)
    sampler = SequentialSampler(dataset, batch_size=8)
    counts = [0, 0]
    for images, labels in DataLoader(dataset, sampler, transform=Compose(CHANGES)):
        found = F.argmax(net(mge.tensor(images)), 1)
        counts[0] += int((found == mge.tensor(labels)).sum().item())
        counts[1] += len(labels)
    right = mge.tensor(np.array(counts, "float32"))
    if dist.get_world_size() > 1:
        right = F.distributed.all_reduce_sum(right)
    return float(right[0].item() / right[1].item())


if __name__ == "__main__":
    ranks = int(sys.argv[2])
    results = dist.launcher(train, n_gpus=ranks)(sys.argv[1]) if ranks > 1 else [train(sys.argv[1])]
    assert all(result == results[0] for result in results)
    print(json.dumps(results[0]))
