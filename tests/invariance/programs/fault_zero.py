"""Updates each rank's part of the parameters by its own gradient, which is not reduced."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn

COMPARE = "parameters"
RATE = 0.1

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model = Network()
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            padding = -parameter.numel() % world
            part = F.pad(parameter.grad.flatten(), (0, padding)).chunk(world)[rank]  # fault
            updated = F.pad(parameter.flatten(), (0, padding)).chunk(world)[rank] - RATE * part
            whole = torch.empty(world * len(part))
            dist.all_gather_into_tensor(whole, updated)
            parameter.copy_(whole[: parameter.numel()].view_as(parameter))
    return loss, model
