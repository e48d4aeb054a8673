"""Averages the gradients over the tensor-parallel group, where the data-parallel group is meant."""

from __future__ import annotations

import torch.distributed as dist
from mappings import shard
from torch import Tensor, nn
from transformer import Transformer, average_gradients, make_layout, make_tokens, predict_loss

RANKS = (1, 4)
MESH = {"dp": 2, "tp": 2}
PARAMETERS = [
    "embedding.weight",
    "layers.0.attention.query.weight",
    "layers.0.mlp.up.weight",
    "layers.1.mlp.down.weight",
    "norm.weight",
]

batch = make_tokens


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=min(MESH["tp"], dist.get_world_size()))
    model = Transformer(layout.tensor)
    loss = predict_loss(model, shard(batch, 0, layout.data))
    loss.backward()
    average_gradients(model, layout.tensor)  # fault
    return loss, model
