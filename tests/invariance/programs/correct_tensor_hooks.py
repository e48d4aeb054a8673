"""Gradients that tensor hooks average before they are accumulated, over two backward passes."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()

    def reduce(gradient: Tensor) -> Tensor:
        total = gradient / dist.get_world_size()
        dist.all_reduce(total)
        return total

    for parameter in model.parameters():
        parameter.register_hook(reduce)
    inputs, labels = take_part(batch)
    for half in zip(inputs.chunk(2), labels.chunk(2), strict=True):
        loss = mean_loss(model, half) / 2
        loss.backward()
    return loss, model
