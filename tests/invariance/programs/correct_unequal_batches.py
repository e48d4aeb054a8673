"""Parts of the batch of unequal length, weighted by how many examples each has."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss
from torch import Tensor, nn


def batch() -> tuple[Tensor, Tensor]:
    """Draw a global batch that no number of ranks divides."""
    return make_examples(11)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    inputs, labels = (tensor.tensor_split(world)[rank] for tensor in batch)
    model = Network()
    loss = mean_loss(model, (inputs, labels)) * len(inputs) / len(batch[0])
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    return loss, model
