"""Train one step with lightly's TiCoLoss over the embeddings of all ranks."""

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

from lightly.loss.tico_loss import TiCoLoss  # noqa: E402


def batch() -> Tensor:
    """Return two views of 16 samples."""
    return torch.randn(2, 16, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def make_model() -> nn.Module:
    """Make an encoder; every call returns the same parameters."""
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Embed this rank's samples, and take the loss over the embeddings of all ranks."""
    model = DistributedDataParallel(make_model())
    views = batch.chunk(dist.get_world_size(), dim=1)[dist.get_rank()]
    first, second = model(views.flatten(0, 1)).chunk(2)
    loss = TiCoLoss(gather_distributed=True)(first, second)
    loss.backward()
    return loss, model.module
