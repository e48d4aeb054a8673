"""Accumulates all micro-batches under no_sync, the last too."""

from __future__ import annotations

import torch
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 2

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(Network())
    losses = []
    inputs, labels = take_part(batch)
    with model.no_sync():  # fault
        for micro in zip(inputs.chunk(MICRO_BATCHES), labels.chunk(MICRO_BATCHES), strict=True):
            loss = mean_loss(model, micro) / MICRO_BATCHES
            loss.backward()
            losses.append(loss.detach())
    return torch.stack(losses).sum(), model.module
