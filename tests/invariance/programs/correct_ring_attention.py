"""Causal attention over positions divided over the ranks, keys and values going round a ring."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from networks import AttentionNetwork, make_examples, mean_loss, take_part
from torch import Tensor, nn

batch = make_examples


def pass_on(tensor: Tensor, distance: int) -> Tensor:
    """Send a tensor to the rank at a distance on the ring, and receive another's."""
    rank, world = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(tensor)
    operations = [
        dist.P2POp(dist.isend, tensor.contiguous(), (rank + distance) % world),
        dist.P2POp(dist.irecv, received, (rank - distance) % world),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return received


class PassOn(torch.autograd.Function):
    """Hand a tensor to the next rank, and its gradient back to the one before."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        """Receive the tensor of the rank before."""
        return pass_on(tensor, 1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Receive the gradient of the tensor that this rank sent."""
        return pass_on(gradient, -1)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Let this rank's positions attend to those of all ranks that are not after them."""
    rank, world, count = dist.get_rank(), dist.get_world_size(), query.shape[2]
    own = torch.arange(count)
    both = torch.stack([key, value])
    scores, values = [], []
    for turn in range(world):
        if turn:
            both = PassOn.apply(both)
        source = (rank - turn) % world
        later = own + source * count > (own + rank * count).unsqueeze(1)
        score = query @ both[0].transpose(-1, -2) / query.shape[-1] ** 0.5
        scores.append(score.masked_fill(later, -torch.inf))
        values.append(both[1])
    return torch.cat(scores, -1).softmax(-1) @ torch.cat(values, -2)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = AttentionNetwork(attend)
    loss = mean_loss(model, take_part(batch, dim=1))
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    return loss, model
