"""Adds the weight decay to this rank's part of the gradient: the sum has it once per rank."""

from __future__ import annotations

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
        parameter.grad /= dist.get_world_size()
        parameter.grad.add_(parameter.detach(), alpha=0.1)  # fault
        dist.all_reduce(parameter.grad)
    return loss, model
