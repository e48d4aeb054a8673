"""DistributedDataParallel that accumulates the gradients of micro-batches under no_sync."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 2

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(Network())
    inputs, labels = take_part(batch)
    losses = []
    for index in range(MICRO_BATCHES):
        micro = inputs.chunk(MICRO_BATCHES)[index], labels.chunk(MICRO_BATCHES)[index]
        with model.no_sync() if index < MICRO_BATCHES - 1 else nullcontext():
            loss = mean_loss(model, micro) / MICRO_BATCHES
            loss.backward()
        losses.append(loss.detach())
    return torch.stack(losses).sum(), model.module
