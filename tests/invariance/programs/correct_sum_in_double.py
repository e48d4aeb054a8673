"""Sums the gradients in 64 bits."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    for parameter in model.parameters():
        total = parameter.grad.double()
        dist.all_reduce(total)
        parameter.grad = (total / dist.get_world_size()).float()
    return loss, model
