"""Draws the initial parameters of each replica from a seed of its own."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network(seed=dist.get_rank())  # fault
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    average_gradients(model)
    return loss, model
