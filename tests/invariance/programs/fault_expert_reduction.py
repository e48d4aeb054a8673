"""Sums the gradients of different experts, which stand at the same place on different ranks."""

from __future__ import annotations

import torch.distributed as dist
from experts import ExpertNetwork
from networks import make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["experts.0.weight", "experts.1.weight", "experts.2.weight", "experts.3.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = ExpertNetwork()
    loss = mean_loss(model, take_part(batch, dim=1)) / dist.get_world_size()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # fault
    return loss, model
