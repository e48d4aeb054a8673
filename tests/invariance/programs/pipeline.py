"""The transformer cut into the stages of a pipeline, one a rank."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from transformer import HIDDEN, LAYERS, POSITIONS, Transformer, make_layout

MICRO_BATCHES = 2


class Stage(nn.Module):
    """A rank's layers; the first and the last stage each hold a copy of the tied embedding."""

    def __init__(self) -> None:
        super().__init__()
        rank, stages = dist.get_rank(), dist.get_world_size()
        whole = Transformer(make_layout(tensor=1).tensor)
        own = range(rank * LAYERS // stages, (rank + 1) * LAYERS // stages)
        self.first, self.last = rank == 0, rank == stages - 1
        self.layers = nn.ModuleDict({str(index): whole.layers[index] for index in own})
        if self.first or self.last:
            self.embedding = whole.embedding
        if self.last:
            self.norm = whole.norm

    def forward(self, x: Tensor) -> Tensor:
        """Compute the stage: of tokens on the first rank, logits on the last, else of activations."""
        if self.first:
            x = self.embedding(x)
        for layer in self.layers.values():
            x = layer(x)
        return F.linear(self.norm(x), self.embedding.weight) if self.last else x


def run_pipeline(stage: Stage, tokens: Tensor) -> Tensor | None:
    """Run all micro-batches forward, then all backward; return the mean loss on the last stage."""
    rank = dist.get_rank()
    inputs, outputs = [], []
    for micro in tokens.chunk(MICRO_BATCHES):
        x = micro[:, :-1]
        if not stage.first:
            x = torch.empty(len(micro), POSITIONS, HIDDEN)
            dist.recv(x, rank - 1)
            x.requires_grad_()
        y = stage(x)
        if stage.last:
            y = F.cross_entropy(y.flatten(0, 1), micro[:, 1:].flatten()) / MICRO_BATCHES
        else:
            dist.send(y.detach(), rank + 1)
        inputs.append(x)
        outputs.append(y)
    for x, y in zip(inputs, outputs, strict=True):
        gradient = None
        if not stage.last:
            gradient = torch.empty_like(y)
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        if not stage.first:
            assert x.grad is not None
            dist.send(x.grad, rank - 1)
    return torch.stack(outputs).detach().sum() if stage.last else None
