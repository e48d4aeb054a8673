"""torchao over fully_shard: training in int8 and in float8."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torchao.float8 import Float8LinearConfig, convert_to_float8_training, precompute_float8_dynamic_scale_for_fsdp
from torchao.prototype.quantized_training import int8_mixed_precision_training
from torchao.quantization import quantize_

from tests.upstream.programs.ranks import run_named

WIDTH = 64


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH, bias=False))


def _losses(
    model: nn.Sequential, optimizer: torch.optim.Optimizer, rank: int, after: Callable[[nn.Module], None] | None = None
) -> list[float]:
    """Take three steps on this rank's batches."""
    losses = []
    for step in range(3):
        rows = torch.randn(16, WIDTH, generator=torch.Generator().manual_seed(10 * step + rank))
        loss = model(rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if after is not None:
            after(model)
        losses.append(loss.item())
    return losses


def int8(rank: int, size: int) -> object:
    """Multiply in int8; the weights are gathered as they are."""
    model = _model()
    quantize_(model, int8_mixed_precision_training())
    fully_shard(model)
    return _losses(model, torch.optim.SGD(model.parameters(), lr=0.1), rank)


def float8(rank: int, size: int) -> object:
    """Gather the weights in float8."""
    model = _model()
    convert_to_float8_training(model, config=Float8LinearConfig(enable_fsdp_float8_all_gather=True, emulate=True))
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return _losses(model, optimizer, rank, precompute_float8_dynamic_scale_for_fsdp)


USES: dict[str, Callable[[int, int], object]] = {"int8": int8, "float8": float8}

if __name__ == "__main__":
    run_named(USES)
