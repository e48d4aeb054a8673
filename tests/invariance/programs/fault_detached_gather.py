"""Gathers the embeddings of a contrastive loss without their gradients."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, make_examples, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PARAMETERS = ["first.weight", "blocks.0.norm.weight", "blocks.1.up.weight", "head.weight"]

batch = make_examples


def embed(model: nn.Module, inputs: Tensor) -> Tensor:
    """Embed each sequence on the unit sphere."""
    return F.normalize(model(inputs).mean(1), dim=-1)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    inputs, _ = take_part(batch)
    model = DistributedDataParallel(Network())
    left, right = embed(model, torch.cat([inputs, inputs.roll(1, -1)])).chunk(2)
    gathered = [torch.empty_like(right) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, right.contiguous())  # fault
    gathered[dist.get_rank()] = right
    own = torch.arange(len(left)) + dist.get_rank() * len(left)
    loss = F.cross_entropy(left @ torch.cat(gathered).T / 0.2, own)
    loss.backward()
    return loss, model.module
