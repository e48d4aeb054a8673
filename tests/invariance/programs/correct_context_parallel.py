"""Causal attention over positions divided over the ranks, keys and values gathered."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mappings import GatherToRegion
from networks import AttentionNetwork, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Let this rank's positions attend to those of all ranks that are not after them."""
    keys, values = (
        GatherToRegion.apply(tensor.transpose(1, 2), dist.group.WORLD).transpose(1, 2) for tensor in (key, value)
    )
    count = query.shape[2]
    own = torch.arange(count) + dist.get_rank() * count
    visible = torch.arange(keys.shape[2]) <= own.unsqueeze(1)
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=visible)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = AttentionNetwork(attend)
    loss = mean_loss(model, take_part(batch, dim=1))
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    return loss, model
