"""Reduces in tensor hooks the gradients that are reduced after the backward pass too."""

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
        dist.all_reduce(gradient)
        return gradient / dist.get_world_size()

    for parameter in model.parameters():
        parameter.register_hook(reduce)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # fault
    return loss, model
