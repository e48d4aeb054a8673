"""Divides the gradients by the number of ranks, which fully_shard has done already."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    fully_shard(model)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    for parameter in model.parameters():
        parameter.grad /= dist.get_world_size()  # fault
    return loss, model
