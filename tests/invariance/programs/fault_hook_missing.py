"""Registers the hook that reduces a gradient for weights alone."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.bias", "blocks.0.norm.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()

    def reduce(gradient: Tensor) -> Tensor:
        total = gradient / dist.get_world_size()
        dist.all_reduce(total)
        return total

    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.register_hook(reduce)  # fault
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
