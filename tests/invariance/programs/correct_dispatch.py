"""A mixture of experts, divided over the ranks, that an `all_to_all` sends its positions."""

from __future__ import annotations

import torch.distributed as dist
from dispatch import DispatchNetwork
from networks import make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DispatchNetwork()
    loss = mean_loss(model, take_part(batch)) / dist.get_world_size()
    loss.backward()
    for name, parameter in model.named_parameters():
        if name != "experts":
            dist.all_reduce(parameter.grad)
    return loss, model
