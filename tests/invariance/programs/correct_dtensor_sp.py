"""A model in tensor parallel by parallelize_module, with norms in sequence parallel."""

from __future__ import annotations

import torch.distributed as dist
from networks import Network, make_examples, mean_loss
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan: dict[str, ParallelStyle] = {
        "first": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    for index in range(2):
        plan[f"blocks.{index}.norm"] = SequenceParallel()
        plan[f"blocks.{index}.up"] = ColwiseParallel(input_layouts=Shard(1))
        plan[f"blocks.{index}.down"] = RowwiseParallel(output_layouts=Shard(1), use_local_output=False)
    model = parallelize_module(Network(), mesh, plan)
    loss = mean_loss(model, batch)
    loss.backward()
    return loss, model
