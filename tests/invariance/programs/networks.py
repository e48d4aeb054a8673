"""Small models of plain layers, and data for them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

FEATURES, HIDDEN, CLASSES, POSITIONS, HEADS = 16, 32, 8, 8, 4

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def initialise(model: nn.Module, seed: int = 0) -> None:
    """Draw all parameters from a generator of their own."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / parameter.shape[-1] ** 0.5)


class Block(nn.Module):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.down = nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        """Add to the residual stream."""
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Network(nn.Module):
    """A classifier of positions, each by itself."""

    def __init__(self, depth: int = 2, seed: int = 0) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])
        self.head = nn.Linear(HIDDEN, CLASSES)
        initialise(self, seed)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits."""
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class AttentionNetwork(nn.Module):
    """A classifier of positions that see those before them; `attend` maps queries, keys and values by head."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.attend = attend
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.inputs = nn.ModuleList([nn.Linear(HIDDEN, 3 * HIDDEN) for _ in range(2)])
        self.outputs = nn.ModuleList([nn.Linear(HIDDEN, HIDDEN) for _ in range(2)])
        self.head = nn.Linear(HIDDEN, CLASSES)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits."""
        x = self.first(x)
        for into, out in zip(self.inputs, self.outputs, strict=True):
            query, key, value = (
                part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in into(F.rms_norm(x, (HIDDEN,))).chunk(3, -1)
            )
            x = x + out(self.attend(query, key, value).transpose(1, 2).flatten(2))
        return self.head(x)


def make_examples(count: int = 8) -> tuple[Tensor, Tensor]:
    """Draw inputs and labels for each of some positions."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(count, POSITIONS, FEATURES, generator=generator)
    return inputs, torch.randint(CLASSES, (count, POSITIONS), generator=generator)


def take_part(batch: tuple[Tensor, Tensor], dim: int = 0) -> tuple[Tensor, Tensor]:
    """Take this rank's part of the inputs and the labels."""
    rank, world = dist.get_rank(), dist.get_world_size()
    inputs, labels = (tensor.chunk(world, dim)[rank].contiguous() for tensor in batch)
    return inputs, labels


def mean_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Compute the mean loss over all positions of the batch."""
    inputs, labels = batch
    return F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())


def average_gradients(model: nn.Module) -> None:
    """Average every gradient over all ranks."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
