"""Normalises the advantages by the mean and the deviation of this rank's part of the batch."""

from __future__ import annotations

import torch.nn.functional as F
from networks import Network, average_gradients, make_examples, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    inputs, labels = take_part(batch)
    values = inputs.sum((-1, -2))
    advantages = (values - values.mean()) / values.std()  # fault
    losses = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten(), reduction="none")
    loss = (losses.view(labels.shape).mean(1) * advantages).mean()
    loss.backward()
    average_gradients(model)
    return loss, model
