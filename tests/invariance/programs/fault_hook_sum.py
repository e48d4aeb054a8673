"""Sums the gradients in tensor hooks, where their mean is meant."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()

    def reduce(gradient: Tensor) -> Tensor:
        total = gradient.clone()
        dist.all_reduce(total)  # fault
        return total

    for parameter in model.parameters():
        parameter.register_hook(reduce)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
