"""pytorch-metric-learning: losses and miners that gather all ranks' embeddings; the gradients are those of one rank."""

from __future__ import annotations

import torch
import torch.distributed as dist
from pytorch_metric_learning import losses, miners
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper, DistributedMinerWrapper
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.upstream.programs.ranks import run_named, weights

ROWS = 8


def gathered(rank: int, size: int) -> object:
    """Train three steps; the loss of the gathered batch is that of the whole batch on one rank."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(6, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = DistributedLossWrapper(losses.ContrastiveLoss())
    found = []
    for step in range(3):
        rows = torch.randn(ROWS * size, 6, generator=torch.Generator().manual_seed(step))
        labels = torch.arange(ROWS * size) % 4
        own = slice(rank * ROWS, (rank + 1) * ROWS)
        value = loss(model(rows[own]), labels[own])
        with torch.no_grad():
            whole = losses.ContrastiveLoss()(model.module(rows), labels)
        torch.testing.assert_close(value, whole * size)  # DistributedDataParallel divides the gradient by it
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(value.detach())
    return [torch.stack(found), weights(model)]


def mined(rank: int, size: int) -> object:
    """Mine pairs among all ranks' embeddings, in both ways of the package, and remember earlier batches."""
    generator = torch.Generator().manual_seed(rank)
    rows, labels = torch.randn(ROWS, 4, generator=generator), torch.arange(ROWS) % 4
    found = []
    for efficient in (False, True):
        loss = DistributedLossWrapper(losses.ContrastiveLoss(), efficient=efficient)
        miner = DistributedMinerWrapper(miners.MultiSimilarityMiner(), efficient=efficient)
        found.append(loss(rows, labels, miner(rows, labels)))
    memory = DistributedLossWrapper(losses.CrossBatchMemory(losses.NTXentLoss(), 4, 64))
    found += [memory(rows, labels) for _ in range(2)]
    dist.barrier()
    return torch.stack(found)


run_named({"gathered": gathered, "mined": mined})
