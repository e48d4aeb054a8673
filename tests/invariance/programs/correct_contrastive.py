"""A contrastive loss over the embeddings of all ranks, gathered with their gradients."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from networks import Network, make_examples, take_part
from torch import Tensor, nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel

batch = make_examples


def embed(model: nn.Module, inputs: Tensor) -> Tensor:
    """Embed each sequence on the unit sphere."""
    return F.normalize(model(inputs).mean(1), dim=-1)


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    inputs, _ = take_part(batch)
    model = DistributedDataParallel(Network())
    left, right = embed(model, torch.cat([inputs, inputs.roll(1, -1)])).chunk(2)
    similarities = left @ torch.cat(all_gather(right)).T / 0.2
    own = torch.arange(len(left)) + dist.get_rank() * len(left)
    loss = F.cross_entropy(similarities, own)
    loss.backward()
    return loss, model.module
