"""Normalises by the statistics of this rank's part of the batch."""

from __future__ import annotations

from networks import CLASSES, FEATURES, HIDDEN, POSITIONS, initialise, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PARAMETERS = ["0.weight", "1.weight", "1.bias", "3.weight"]

batch = make_examples


def make_model() -> nn.Module:
    """Make a network with a norm over the batch."""
    model = nn.Sequential(
        nn.Linear(FEATURES, HIDDEN),
        nn.BatchNorm1d(POSITIONS),
        nn.ReLU(),
        nn.Linear(HIDDEN, CLASSES),
    )
    initialise(model)
    return model


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(make_model())
    loss = mean_loss(model, take_part(batch))  # fault
    loss.backward()
    return loss, model.module
