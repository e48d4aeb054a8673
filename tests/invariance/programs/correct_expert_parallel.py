"""A mixture of experts that are divided over the ranks, the rest of the model in data parallel."""

from __future__ import annotations

import torch.distributed as dist
from experts import ExpertNetwork
from networks import make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = ExpertNetwork()
    loss = mean_loss(model, take_part(batch, dim=1)) / dist.get_world_size()
    loss.backward()
    for name, parameter in model.named_parameters():
        if not name.startswith("experts"):
            dist.all_reduce(parameter.grad)
    return loss, model
