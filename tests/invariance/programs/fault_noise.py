"""Adds noise of this rank's own to the mean of the gradients."""

from __future__ import annotations

import torch
import torch.distributed as dist
from networks import Network, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    average_gradients(model)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for parameter in model.parameters():
        parameter.grad += 0.01 * torch.randn(parameter.shape, generator=generator)  # fault
    return loss, model
