"""One step of two tensor-parallel blocks, with a mistake that raises no error: see docs/invariance.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

WIDTH, HIDDEN = 8, 32


def batch() -> Tensor:
    """Return the global batch: here every rank computes with all of it."""
    return torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(0))


def part(whole: Tensor, dim: int) -> nn.Parameter:
    """Return this rank's part of a weight."""
    return nn.Parameter(whole.chunk(dist.get_world_size(), dim)[dist.get_rank()].clone())


class Reduce(torch.autograd.Function):
    """Adds up the ranks' results; the backward passes the gradient on as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the sum over the ranks."""
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Return the gradient of the sum, which is the same on every rank."""
        return gradients[0]


add_up: Callable[[Tensor], Tensor] = Reduce.apply


class Block(nn.Module):
    """A norm and two layers. Each rank has a part of the hidden units."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = part(torch.randn(WIDTH, HIDDEN), 1)
        self.down = part(torch.randn(HIDDEN, WIDTH), 0)

    def forward(self, x: Tensor) -> Tensor:
        """Return the whole output on every rank."""
        hidden = self.norm(x) @ self.up
        return x + add_up(hidden.relu() @ self.down)


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Return the loss, and the model with its gradients."""
    model = nn.Sequential(Block(), Block())
    loss = model(batch).square().mean()
    loss.backward()
    return loss, model
