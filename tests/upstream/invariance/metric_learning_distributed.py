"""Train one step with pytorch-metric-learning's DistributedLossWrapper around a loss over pairs of samples."""

from __future__ import annotations

import torch
import torch.distributed as dist
from pytorch_metric_learning.losses import NTXentLoss
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel


def batch() -> tuple[Tensor, Tensor]:
    """Return 16 samples of four classes."""
    return torch.randn(16, 6, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 4


def make_model() -> nn.Module:
    """Make an encoder; every call returns the same parameters."""
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Embed this rank's samples, and take the loss over the pairs of samples of all ranks."""
    model = DistributedDataParallel(make_model())
    samples, labels = (part.chunk(dist.get_world_size())[dist.get_rank()] for part in batch)
    loss = DistributedLossWrapper(NTXentLoss(temperature=0.5))(model(samples), labels)
    loss.backward()
    return loss, model.module
