"""A sharded optimizer under DistributedDataParallel."""

from __future__ import annotations

import torch
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

COMPARE = "parameters"

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DistributedDataParallel(Network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    optimizer.step()
    return loss, model.module
