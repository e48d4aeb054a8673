"""A model sharded by fully_shard over pairs of ranks, replicated over the pairs."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RANKS = (1, 4)
MESH = {"replicate": 2, "shard": 2}

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    shape = (2, 2) if dist.get_world_size() == 4 else (1, 1)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
    model = Network()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
