"""Averages gradients over the ranks though each rank has only its own embeddings' part of one common loss."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, average_gradients, make_examples, take_part
from torch import Tensor, nn

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def gather(embeddings: Tensor) -> Tensor:
    """Gather the embeddings of all ranks, of which this rank's own have a gradient."""
    gathered = [torch.empty_like(embeddings) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, embeddings.contiguous())
    gathered[dist.get_rank()] = embeddings
    return torch.cat(gathered)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    inputs, _ = take_part(batch)
    model = Network()
    both = F.normalize(model(torch.cat([inputs, inputs.roll(1, -1)])).mean(1), dim=-1)
    left, right = (gather(half) for half in both.chunk(2))
    loss = F.cross_entropy(left @ right.T / 0.2, torch.arange(len(left)))
    loss.backward()
    average_gradients(model)  # fault
    return loss, model
