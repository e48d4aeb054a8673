"""A model in tensor parallel by parallelize_module and sharded by fully_shard, on a two-dimensional mesh."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

RANKS = (1, 4)
MESH = {"dp": 2, "tp": 2}

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    shape = (2, 2) if dist.get_world_size() == 4 else (1, 1)
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
    model = Network()
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    rank, replicas = mesh["dp"].get_local_rank(), mesh["dp"].size()
    loss = mean_loss(model, (batch[0].chunk(replicas)[rank], batch[1].chunk(replicas)[rank]))
    loss.backward()
    return loss, model
