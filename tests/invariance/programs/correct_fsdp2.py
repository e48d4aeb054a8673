"""A model sharded by fully_shard, block by block."""

from __future__ import annotations

from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = Network()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
