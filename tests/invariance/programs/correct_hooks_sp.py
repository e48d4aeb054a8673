"""Tensor hooks that reduce over the data-parallel and, for what is whole, over the sequence-parallel group."""

from __future__ import annotations

from collections.abc import Callable

import torch.distributed as dist
from mappings import shard
from torch import Tensor, nn
from transformer import Layout, Transformer, is_sharded, make_layout, make_tokens, predict_loss

RANKS = (1, 4)
MESH = {"dp": 2, "tp": 2}

batch = make_tokens


def reducing(name: str, layout: Layout) -> Callable[[Tensor], Tensor]:
    """Return the hook of a parameter."""

    def reduce(gradient: Tensor) -> Tensor:
        total = gradient / dist.get_world_size(layout.data)
        dist.all_reduce(total, group=layout.data)
        if not is_sharded(name) and name != "embedding.weight":
            dist.all_reduce(total, group=layout.tensor)
        return total

    return reduce


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    layout = make_layout(tensor=min(MESH["tp"], dist.get_world_size()))
    model = Transformer(layout.tensor, sequence=True)
    for name, parameter in model.named_parameters():
        parameter.register_hook(reducing(name, layout))
    loss = predict_loss(model, shard(batch, 0, layout.data))
    loss.backward()
    return loss, model
