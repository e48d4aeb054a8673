"""A network in a pipeline of torch.distributed.pipelining, scheduled as in GPipe."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, make_examples
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

DEPTH = 4

batch = make_examples


class Part(nn.Module):
    """A rank's layers, under the names that they have in the whole network."""

    def __init__(self, rank: int, stages: int) -> None:
        super().__init__()
        whole = Network(depth=DEPTH)
        own = range(rank * DEPTH // stages, (rank + 1) * DEPTH // stages)
        self.first = whole.first if rank == 0 else None
        self.blocks = nn.ModuleDict({str(index): whole.blocks[index] for index in own})
        self.head = whole.head if rank == stages - 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """Compute the stage."""
        if self.first is not None:
            x = self.first(x)
        for block in self.blocks.values():
            x = block(x)
        return x if self.head is None else self.head(x)


def compute_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the mean loss over a micro-batch."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor | None, nn.Module]:
    """Take one step."""
    rank, stages = dist.get_rank(), dist.get_world_size()
    inputs, labels = batch
    model = Part(rank, stages)
    stage = PipelineStage(model, rank, stages, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=compute_loss)
    losses: list[Tensor] = []
    last = {"target": labels, "losses": losses} if rank == stages - 1 else {}
    schedule.step(*([inputs] if rank == 0 else []), **last)
    return torch.stack(losses).mean() if losses else None, model
