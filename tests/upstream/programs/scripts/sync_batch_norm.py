"""SyncBatchNorm on CPU tensors, which torch's module refuses; and its conversion."""

from __future__ import annotations

import torch
from torch import nn

from tests.upstream.programs.ranks import run, show


def main(rank: int, size: int) -> None:
    """Convert a model, and train it."""
    torch.manual_seed(0)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)))
    assert any(isinstance(module, nn.SyncBatchNorm) for module in model.modules())
    inputs = torch.arange(24.0).reshape(4, 6).sin() + rank
    try:
        output = model(inputs)
    except ValueError as error:
        show(rank, refused=str(error).splitlines()[0])
        return
    show(rank, output=output)


if __name__ == "__main__":
    run(main)
