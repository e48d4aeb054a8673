"""Sums the gradients in 16 bits."""

from __future__ import annotations

import torch
import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    for parameter in model.parameters():
        rounded = parameter.grad.to(torch.bfloat16)  # fault
        dist.all_reduce(rounded)
        parameter.grad.copy_(rounded).div_(dist.get_world_size())
    return loss, model
