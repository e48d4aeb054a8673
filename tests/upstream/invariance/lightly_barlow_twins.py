"""Train one step with lightly's BarlowTwinsLoss over the embeddings of all ranks."""

from __future__ import annotations

import os
import sys
from types import ModuleType

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

os.environ["LIGHTLY_DID_VERSION_CHECK"] = "True"  # or its import asks the network for a newer version

import lightly

_package = sys.modules["lightly.loss"] = ModuleType("lightly.loss")  # without its __init__.py, which needs torchvision
_package.__path__ = [os.path.join(lightly.__path__[0], "loss")]

from lightly.loss.barlow_twins_loss import BarlowTwinsLoss  # noqa: E402


def batch() -> Tensor:
    """Return two views of 32 samples: the same 8 four times, as the loss standardizes the embeddings of each rank."""
    return torch.randn(2, 8, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).repeat(1, 4, 1)


def make_model() -> nn.Module:
    """Make an encoder; every call returns the same parameters."""
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4, bias=False)).double()
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Embed this rank's samples, and take the loss over the embeddings of all ranks."""
    model = DistributedDataParallel(make_model())
    views = batch.chunk(dist.get_world_size(), dim=1)[dist.get_rank()]
    first, second = model(views.flatten(0, 1)).chunk(2)
    loss = BarlowTwinsLoss(gather_distributed=True)(first, second)
    loss.backward()
    return loss, model.module
