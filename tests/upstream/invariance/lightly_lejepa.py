"""Train one step with lightly's SIGReg, the regularizer of LeJEPA, over the embeddings of all ranks."""

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

from lightly.loss.lejepa_loss import SIGReg  # noqa: E402


def batch() -> Tensor:
    """Return 32 samples."""
    return torch.randn(32, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def make_model() -> nn.Module:
    """Make an encoder; every call returns the same parameters."""
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    return model


def unit_vectors(device: torch.device, dtype: torch.dtype, features: int) -> Tensor:
    """Return directions to project onto: always the same, whatever the other ranks have drawn."""
    return nn.functional.normalize(
        torch.randn(features, 16, generator=torch.Generator().manual_seed(2), dtype=dtype), dim=0
    )


def step(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Embed this rank's samples, and take the loss over the embeddings of all ranks."""
    model = DistributedDataParallel(make_model())
    regularizer = SIGReg(num_vectors=16, gather_distributed=True).double()
    regularizer._generate_unit_vectors = unit_vectors
    loss = regularizer(model(batch.chunk(dist.get_world_size())[dist.get_rank()]))
    loss.backward()
    return loss, model.module
