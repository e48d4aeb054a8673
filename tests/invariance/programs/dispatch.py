"""A mixture of experts, divided over the ranks, to which an `all_to_all` sends every position and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import CLASSES, FEATURES, HIDDEN
from torch import Tensor, nn

EXPERTS = 4

Move = Callable[[Tensor], Tensor]


class AllToAll(torch.autograd.Function):
    """Send each rank its part of the first dimension, and the gradients back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, move: Move) -> Tensor:
        """Exchange the parts; `move` is applied to those of the gradient."""
        ctx.move = move
        received = torch.empty(tensor.shape)
        dist.all_to_all_single(received, tensor.contiguous())
        return received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Exchange the parts of the gradient."""
        received = torch.empty(gradient.shape)
        dist.all_to_all_single(received, gradient.contiguous())
        return ctx.move(received), None


def keep(tensor: Tensor) -> Tensor:
    """Return a tensor as it is."""
    return tensor


class DispatchNetwork(nn.Module):
    """A classifier of positions; each rank has some of these and, as one weight, its part of the experts."""

    def __init__(self, send: Move = keep, receive: Move = keep, back: Move = keep) -> None:
        super().__init__()
        self.send, self.receive, self.back = send, receive, back
        generator = torch.Generator().manual_seed(0)
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.head = nn.Linear(HIDDEN, CLASSES)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
        experts = 0.3 * torch.randn(EXPERTS, HIDDEN, HIDDEN, generator=generator)
        self.experts = nn.Parameter(experts.chunk(dist.get_world_size())[dist.get_rank()].clone())

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits of this rank's positions."""
        world = dist.get_world_size()
        x = self.first(x)
        positions = x.flatten(0, -2)
        weights = self.gate(positions).softmax(-1)
        chosen = F.one_hot(weights.argmax(-1), EXPERTS).to(x.dtype)
        sent = self.send(torch.einsum("ne,nd->end", chosen, positions))
        mine = AllToAll.apply(sent, self.back).unflatten(0, (world, -1)).transpose(0, 1).flatten(1, 2)
        added = torch.einsum("end,edh->enh", mine, self.experts).relu()
        added = added.unflatten(1, (world, -1)).transpose(0, 1).flatten(0, 1)
        added = self.receive(AllToAll.apply(added, keep))
        return self.head(x + torch.einsum("ne,end->nd", chosen * weights, added).view(x.shape))
