"""Gathers the keys and values of other ranks' positions without their gradients."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mappings import all_gather
from networks import AttentionNetwork, average_gradients, make_examples, mean_loss, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "inputs.0.weight", "inputs.1.weight"]

batch = make_examples


def gather(tensor: Tensor) -> Tensor:
    """Gather the positions of all ranks, of which this rank's own have a gradient."""
    parts = list(all_gather(tensor, 2, dist.group.WORLD).chunk(dist.get_world_size(), 2))  # fault
    parts[dist.get_rank()] = tensor
    return torch.cat(parts, 2)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Let this rank's positions attend to those of all ranks that are not after them."""
    count = query.shape[2]
    own = torch.arange(count) + dist.get_rank() * count
    visible = torch.arange(count * dist.get_world_size()) <= own.unsqueeze(1)
    return F.scaled_dot_product_attention(query, gather(key), gather(value), attn_mask=visible)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = AttentionNetwork(attend)
    loss = mean_loss(model, take_part(batch, dim=1))
    loss.backward()
    average_gradients(model)
    return loss, model
