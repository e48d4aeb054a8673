"""Positions divided over the ranks, which exchange them for heads around attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import AttentionNetwork, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def exchange(tensor: Tensor, split: int, join: int) -> Tensor:
    """Give each rank its part of one dimension, and all of another."""
    parts = torch.stack(tensor.chunk(dist.get_world_size(), split))
    received = torch.empty_like(parts)
    dist.all_to_all_single(received, parts)
    return torch.cat(list(received), join)


class Exchange(torch.autograd.Function):
    """Exchange one dimension for another, and back for the gradients."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, split: int, join: int) -> Tensor:
        """Exchange the dimensions."""
        ctx.split, ctx.join = split, join
        return exchange(tensor, split, join)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Exchange them back."""
        return exchange(gradient, ctx.join, ctx.split), None, None


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend with this rank's heads over all positions."""
    query, key, value = (Exchange.apply(tensor, 1, 2) for tensor in (query, key, value))
    return Exchange.apply(F.scaled_dot_product_attention(query, key, value, is_causal=True), 2, 1)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = AttentionNetwork(attend)
    loss = mean_loss(model, take_part(batch, dim=1))
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    return loss, model
