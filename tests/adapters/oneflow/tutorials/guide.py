"""Data-parallel training as in OneFlow's guide, with a checkpoint and a test: guide.py FOLDER.

python3 -m oneflow.distributed.launch --nproc_per_node 2 guide.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oneflow as flow
from oneflow import nn
from oneflow.nn.parallel import DistributedDataParallel
from oneflow.utils.data import DataLoader, TensorDataset
from oneflow.utils.data.distributed import DistributedSampler

FOLDER = Path(sys.argv[1])
BATCH = 32  # of all ranks together


class NeuralNetwork(nn.Module):  # type: ignore[misc]
    """Three layers."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.layers = nn.Sequential(nn.Linear(36, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 10))
        numbers = np.random.RandomState(flow.env.get_rank())
        for parameter in self.parameters():
            with flow.no_grad():
                parameter.copy_(flow.tensor(numbers.normal(0, 0.3, tuple(parameter.shape)).astype("float32")))

    def forward(self, x: Any) -> Any:
        """Return ten logits for each image."""
        return self.layers(self.flatten(x))


def samples(count: int, seed: int) -> Any:
    """Return images of 6 by 6 pixels and their classes."""
    numbers = np.random.RandomState(seed)
    patterns = np.random.RandomState(9).normal(size=(10, 1, 6, 6))
    classes = numbers.randint(0, 10, count)
    images = patterns[classes] + numbers.normal(0, 0.3, (count, 1, 6, 6))
    return TensorDataset(flow.tensor(images.astype("float32")), flow.tensor(classes))


def reader(data: Any) -> Any:
    """Return a loader of this rank's batches."""
    size = BATCH // flow.env.get_world_size()
    return DataLoader(data, batch_size=size, sampler=DistributedSampler(data, shuffle=False), num_workers=0)


def mean_of_all(number: float) -> float:
    """Return the mean over the ranks."""
    total = flow.tensor([number], dtype=flow.float64)
    flow.comm.all_reduce(total)
    return float(total.item() / flow.env.get_world_size())


def train(model: Any) -> list[float]:
    """Return the mean loss of each epoch."""
    loss_of = nn.CrossEntropyLoss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    losses = []
    for epoch in range(4):
        model.train()
        found = []
        for images, labels in reader(samples(256, 1)):
            loss = loss_of(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(mean_of_all(loss.item()))
        schedule.step()
        losses.append(sum(found) / len(found))
        if flow.env.get_rank() == 0:
            print(f"epoch {epoch}: loss {losses[-1]:.4f}", flush=True)
    return losses


def test() -> list[float]:
    """Return the loss and the accuracy of the checkpoint."""
    model = NeuralNetwork()
    model.load_state_dict(flow.load(str(FOLDER / "model")))
    model.eval()
    losses, right = [], []
    with flow.no_grad():
        for images, labels in reader(samples(96, 2)):
            logits = model(images)
            losses.append(mean_of_all(nn.CrossEntropyLoss()(logits, labels).item()))
            right.append(mean_of_all((logits.argmax(1) == labels).to(dtype=flow.float32).mean().item()))
    return [sum(losses) / len(losses), sum(right) / len(right)]


def main() -> None:
    """Train, save, test; rank 0 prints the numbers in the last line."""
    model = DistributedDataParallel(NeuralNetwork())
    losses = train(model)
    if flow.env.get_rank() == 0:
        flow.save(model.state_dict(), str(FOLDER / "model"))
    flow.comm.barrier()
    results = {"losses": losses, "test": test()}
    if flow.env.get_rank() == 0:
        print(json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
