"""Sums the gradients in tensor hooks over groups in which each rank is alone or has half of the others."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.bias"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    world = dist.get_world_size()
    groups = [dist.new_group(list(range(first, world, 2))) for first in range(min(world, 2))]
    group = groups[dist.get_rank() % 2]

    def reduce(gradient: Tensor) -> Tensor:
        total = gradient / world
        dist.all_reduce(total, group=group)  # fault
        return total

    for parameter in model.parameters():
        parameter.register_hook(reduce)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
