"""Gives every rank the first part of the batch."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    count = len(batch[0]) // dist.get_world_size()
    inputs, labels = (tensor[:count] for tensor in batch)  # fault
    model = DistributedDataParallel(Network())
    loss = mean_loss(model, (inputs, labels))
    loss.backward()
    return loss, model.module
