"""A network with a mixture of experts, which are divided over the ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from mappings import GatherToRegion, ScatterFromRegion
from networks import CLASSES, FEATURES, HIDDEN
from torch import Tensor, nn

EXPERTS = 4


class ExpertNetwork(nn.Module):
    """A classifier of positions; each rank has its part of these, and of the experts."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        rank, world = dist.get_rank(), dist.get_world_size()
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.gate = nn.Linear(HIDDEN, EXPERTS)
        self.experts = nn.ModuleDict({str(index): nn.Linear(HIDDEN, HIDDEN) for index in range(EXPERTS)})
        self.head = nn.Linear(HIDDEN, CLASSES)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(0.2 * torch.randn(parameter.shape, generator=generator))
        for index in range(EXPERTS):
            if index * world // EXPERTS != rank:
                del self.experts[str(index)]

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits of this rank's positions, to which every expert may add."""
        x = self.first(x)
        everybody = dist.group.WORLD
        weights = GatherToRegion.apply(self.gate(x).softmax(-1), everybody)
        positions = GatherToRegion.apply(x, everybody)
        chosen = weights >= weights.topk(2).values[..., 1:]
        added = torch.zeros_like(positions)
        for index, expert in self.experts.items():
            weight = (weights * chosen)[..., int(index)].unsqueeze(-1)
            added = added + weight * expert(positions).relu()
        return self.head(x + ScatterFromRegion.apply(added, everybody))
