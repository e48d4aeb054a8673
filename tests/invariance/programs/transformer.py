"""A small transformer, parallel in data, tensor, sequence and pipeline by hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from mappings import (
    CopyToRegion,
    GatherToRegion,
    JoinSequence,
    ReduceFromRegion,
    ScatterFromRegion,
    SplitSequence,
    shard,
)
from torch import Tensor, nn

VOCABULARY, HIDDEN, HEADS, LAYERS, POSITIONS, SEQUENCES = 40, 32, 4, 2, 8, 8


@dataclass(frozen=True)
class Layout:
    """The groups to which a rank belongs: `rank = dp * tp_size + tp`."""

    data: dist.ProcessGroup
    tensor: dist.ProcessGroup


def make_layout(tensor: int) -> Layout:
    """Divide the ranks into tensor-parallel groups of neighbours, and data-parallel groups across these."""
    rank, world = dist.get_rank(), dist.get_world_size()
    tensor_groups = [dist.new_group(list(range(first, first + tensor))) for first in range(0, world, tensor)]
    data_groups = [dist.new_group(list(range(first, world, tensor))) for first in range(tensor)]
    return Layout(data_groups[rank % tensor], tensor_groups[rank // tensor])


def make_tokens() -> Tensor:
    """Draw the global batch."""
    return torch.randint(VOCABULARY, (SEQUENCES, POSITIONS + 1), generator=torch.Generator().manual_seed(1))


def draw(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Draw the initial value of a whole weight."""
    return torch.randn(rows, columns, generator=generator) / columns**0.5


class Norm(nn.Module):
    """Root mean square normalisation."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise over the last dimension."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class ColumnLinear(nn.Module):
    """A linear layer whose outputs are divided over the group."""

    def __init__(self, inputs: int, outputs: int, group: dist.ProcessGroup, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(shard(draw(outputs, inputs, generator), 0, group))

    def forward(self, x: Tensor) -> Tensor:
        """Compute this rank's outputs."""
        return F.linear(x, self.weight)


class RowLinear(nn.Module):
    """A linear layer whose inputs are divided over the group."""

    def __init__(
        self, inputs: int, outputs: int, group: dist.ProcessGroup, generator: torch.Generator, sequence: bool
    ) -> None:
        super().__init__()
        self.group, self.sequence = group, sequence
        self.weight = nn.Parameter(shard(draw(outputs, inputs, generator), 1, group))
        self.bias = nn.Parameter(0.1 * torch.randn(outputs, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        """Add up the partial results of all ranks."""
        reduce = ScatterFromRegion if self.sequence else ReduceFromRegion
        return reduce.apply(F.linear(x, self.weight), self.group) + self.bias


class Sharded(nn.Module):
    """A part of a layer that is divided over the group: `enter` brings it the activations."""

    def __init__(self, group: dist.ProcessGroup, sequence: bool) -> None:
        super().__init__()
        self.group, self.sequence = group, sequence

    def enter(self, x: Tensor) -> Tensor:
        """Give every rank all positions, and sum their gradients in the backward pass."""
        return (GatherToRegion if self.sequence else CopyToRegion).apply(x, self.group)


class Attention(Sharded):
    """Causal attention, its heads divided over the group."""

    def __init__(self, group: dist.ProcessGroup, generator: torch.Generator, sequence: bool) -> None:
        super().__init__(group, sequence)
        self.query, self.key, self.value = (ColumnLinear(HIDDEN, HIDDEN, group, generator) for _ in range(3))
        self.out = RowLinear(HIDDEN, HIDDEN, group, generator, sequence)

    def forward(self, x: Tensor) -> Tensor:
        """Attend with this rank's heads."""
        x = self.enter(x)
        query, key, value = (
            projection(x).unflatten(-1, (-1, HIDDEN // HEADS)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(attended.transpose(1, 2).flatten(2))


class Mlp(Sharded):
    """The feed-forward part, its hidden units divided over the group."""

    def __init__(self, group: dist.ProcessGroup, generator: torch.Generator, sequence: bool) -> None:
        super().__init__(group, sequence)
        self.up = ColumnLinear(HIDDEN, 2 * HIDDEN, group, generator)
        self.down = RowLinear(2 * HIDDEN, HIDDEN, group, generator, sequence)

    def forward(self, x: Tensor) -> Tensor:
        """Compute with this rank's hidden units."""
        return self.down(F.gelu(self.up(self.enter(x))))


class Layer(nn.Module):
    """A layer of the transformer."""

    def __init__(
        self,
        group: dist.ProcessGroup,
        generator: torch.Generator,
        sequence: bool,
        dropout: float,
        mlp: type[Mlp],
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(HIDDEN), Norm(HIDDEN)
        self.attention = Attention(group, generator, sequence)
        self.mlp = mlp(group, generator, sequence)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Add to the residual stream."""
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """A language model with tied embeddings, its layers divided over the group."""

    def __init__(
        self, group: dist.ProcessGroup, sequence: bool = False, dropout: float = 0.0, mlp: type[Mlp] = Mlp
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.group, self.sequence = group, sequence
        self.embedding = nn.Embedding.from_pretrained(draw(VOCABULARY, HIDDEN, generator), freeze=False)
        self.layers = nn.ModuleList([Layer(group, generator, sequence, dropout, mlp) for _ in range(LAYERS)])
        self.norm = Norm(HIDDEN)

    def forward(self, tokens: Tensor) -> Tensor:
        """Predict each position's next token."""
        x = self.embedding(tokens)
        if self.sequence:
            x = SplitSequence.apply(x, self.group)
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        if self.sequence:
            x = JoinSequence.apply(x, self.group)
        return F.linear(x, self.embedding.weight)


def predict_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """Compute the mean loss of predicting each next token."""
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def average_gradients(model: nn.Module, group: dist.ProcessGroup) -> None:
    """Average every gradient over the group."""
    for parameter in model.parameters():
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= dist.get_world_size(group)


def is_sharded(name: str) -> bool:
    """Return whether a parameter is divided over the tensor-parallel group."""
    return name.endswith("weight") and ("attention" in name or "mlp" in name)


def clip_gradients(model: nn.Module, group: dist.ProcessGroup, limit: float) -> None:
    """Scale the gradients down to a global norm, in which each shard counts and each replica counts once."""
    sharded, replicated = torch.zeros(()), torch.zeros(())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        (sharded if is_sharded(name) else replicated).add_(parameter.grad.square().sum())
    dist.all_reduce(sharded, group=group)
    scale = (limit / (sharded + replicated).sqrt()).clamp(max=1.0)
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad *= scale
