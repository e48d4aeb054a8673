"""Training that stops and goes on: python photographs.py FOLDER RANKS, with CIFAR10's files in FOLDER.

The calls are those of MegEngine's programs for ImageNet: an endless sampler, synchronized normalization, a schedule,
and a checkpoint by rank 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import megengine as mge
import megengine.autodiff as autodiff
import megengine.data as data
import megengine.data.transform as T
import megengine.distributed as dist
import megengine.functional as F
import megengine.module as M
import megengine.optimizer as optim
import numpy as np

FOLDER, RANKS = sys.argv[1], int(sys.argv[2])
BATCH = 16  # of all ranks together
CHECKPOINT = str(Path(FOLDER, "checkpoint.pkl"))


class Net(M.Module):  # type: ignore[misc]
    """A convolution, its normalization over all ranks, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = M.Conv2d(3, 6, 3, stride=2)
        self.norm = M.SyncBatchNorm(6) if dist.get_world_size() > 1 else M.BatchNorm2d(6)
        self.pool = M.AvgPool2d(5)
        self.classifier = M.Linear(54, 10)
        numbers = np.random.RandomState(4)
        for parameter in self.parameters():
            parameter[...] = mge.tensor(numbers.normal(0, 0.2, parameter.shape).astype("float32"))

    def forward(self, x: Any) -> Any:
        """Return ten logits for each image."""
        return self.classifier(F.flatten(self.pool(F.relu(self.norm(self.conv(x)))), 1))


class Meter:
    """A mean over steps and ranks."""

    def __init__(self) -> None:
        self.sum, self.count = 0.0, 0

    def update(self, value: Any, count: int) -> None:
        """Add the mean of ``count`` samples of each rank."""
        if dist.get_world_size() > 1:
            value = F.distributed.all_reduce_sum(value) / dist.get_world_size()
        self.sum, self.count = self.sum + value.item() * count, self.count + count

    @property
    def mean(self) -> float:
        """The mean."""
        return self.sum / self.count


def reader(is_train: bool) -> Any:
    """Return a loader of this rank's batches."""
    dataset = data.dataset.CIFAR10(FOLDER, train=is_train, download=False)
    size = BATCH // dist.get_world_size()
    change = T.Compose([T.Normalize([113.0, 122.0, 125.0], [52.0, 51.0, 51.0]), T.ToMode("CHW")])
    if is_train:
        sampler = data.Infinite(data.RandomSampler(dataset, batch_size=size, drop_last=True, seed=0))
        return data.DataLoader(dataset, sampler=sampler, transform=change, num_workers=0)
    return data.DataLoader(dataset, data.SequentialSampler(dataset, batch_size=size), change)


def managed(net: Net) -> Any:
    """Return the manager of gradients, averaged over the ranks; all ranks get rank 0's weights."""
    manager = autodiff.GradManager()
    if dist.get_world_size() == 1:
        return manager.attach(net.parameters())
    dist.bcast_list_(net.tensors())
    return manager.attach(net.parameters(), callbacks=dist.make_allreduce_cb("mean"))


def restore(net: Any, optimizer: Any, schedule: Any) -> None:
    """Load the checkpoint."""
    found = mge.load(CHECKPOINT)
    net.load_state_dict(found["net"])
    optimizer.load_state_dict(found["optimizer"])
    schedule.load_state_dict(found["schedule"])


def train(batches: Any, steps: int, start: int) -> list[float]:
    """Train from the checkpoint, if it is not the start; return the mean loss of each step."""
    net = Net()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = optim.MultiStepLR(optimizer, milestones=[3, 6], gamma=0.5)
    if start:
        restore(net, optimizer, schedule)
    manager = managed(net)
    net.train()
    losses = []
    for step in range(start, start + steps):
        images, labels = next(batches)
        meter = Meter()
        with manager:
            loss = F.loss.cross_entropy(net(mge.Tensor(images)), mge.Tensor(labels), label_smooth=0.1)
            manager.backward(loss)
            optimizer.step().clear_grad()
        schedule.step()
        meter.update(loss, len(labels))
        losses.append(meter.mean)
        if dist.get_rank() == 0:
            mge.get_logger().info("step %d: loss %f, lr %s", step, meter.mean, schedule.get_lr())
    if dist.get_rank() == 0:
        states = {"optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}
        mge.save({"net": net.state_dict(), **states}, CHECKPOINT)
    dist.group_barrier()
    return losses


def test() -> list[float]:
    """Return the mean loss and the accuracy of the checkpoint on the test set."""
    net = Net()
    net.load_state_dict(mge.load(CHECKPOINT)["net"])
    net.eval()
    loss, accuracy = Meter(), Meter()
    for images, labels in reader(is_train=False):
        logits, wanted = net(mge.Tensor(images)), mge.Tensor(labels)
        loss.update(F.loss.cross_entropy(logits, wanted), len(labels))
        accuracy.update(F.metric.topk_accuracy(logits, wanted, topk=1), len(labels))
    return [loss.mean, accuracy.mean]


def work() -> dict[str, list[float]]:
    """Train for four steps and for four more in new objects, then test."""
    batches = iter(reader(is_train=True))
    first = train(batches, steps=4, start=0)
    return {"first": first, "second": train(batches, steps=4, start=4), "test": test()}


if __name__ == "__main__":
    results = dist.launcher(n_gpus=RANKS)(work)() if RANKS > 1 else [work()]
    assert all(result == results[0] for result in results)
    print(json.dumps(results[0]))
