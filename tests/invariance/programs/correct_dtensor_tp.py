"""A model in tensor parallel by parallelize_module."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = Network()
    for block in model.blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    loss = mean_loss(model, batch)
    loss.backward()
    return loss, model
