"""DeepSpeed on CPUs: each stage of ZeRO with a checkpoint, its pipeline, and experts on other ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from deepspeed.pipe import PipelineModule
from torch import nn

from tests.upstream.programs.ranks import run_named
from tests.upstream.programs.training import own_batch, small_model, trained_alone

ROWS = 4


def config(size: int, **more: Any) -> dict[str, Any]:
    sizes = {"train_batch_size": ROWS * size, "train_micro_batch_size_per_gpu": ROWS}
    plain = {"zero_allow_untested_optimizer": True, "gradient_clipping": 0.0, "steps_per_print": 1000}
    return sizes | plain | more


def zero(stage: int, rank: int, size: int) -> object:
    """Train with a stage of ZeRO, and load what was saved; the parameters are those of one rank."""
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = config(size, zero_optimization={"stage": stage})
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings, dist_init_required=False)
    losses = []
    for step in range(3):
        inputs, targets = own_batch(step, rank, size)
        loss = nn.functional.mse_loss(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    with tempfile.TemporaryDirectory() as own:
        folder = [own]
        dist.broadcast_object_list(folder, 0)
        engine.save_checkpoint(folder[0], tag="last")
        engine.load_checkpoint(folder[0], tag="last")
        dist.barrier()
    parameters = list(model.parameters())
    with deepspeed.zero.GatheredParameters(parameters, enabled=stage == 3):
        for parameter, other in zip(parameters, trained_alone(size).parameters(), strict=True):
            torch.testing.assert_close(parameter.detach(), other.detach(), rtol=1e-4, atol=1e-5)
    return losses


def pipeline(rank: int, size: int) -> object:
    """Train in two stages, several pipelines side by side if there are more ranks."""
    deepspeed.init_distributed(dist_backend=dist.get_backend())
    torch.manual_seed(0)
    layers = [nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4)]
    model = PipelineModule(layers=layers, loss_fn=nn.MSELoss(), num_stages=2, partition_method="uniform")
    settings = config(size // 2, gradient_accumulation_steps=4, train_batch_size=4 * ROWS * size // 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
    generator = torch.Generator().manual_seed(engine.grid.get_data_parallel_rank())
    batches = iter([(torch.randn(ROWS, 8, generator=generator), torch.randn(ROWS, 4, generator=generator))] * 100)
    return [engine.train_batch(batches).item() for _ in range(4)]


class _Experts(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.experts = MoE(hidden_size=8, expert=nn.Linear(8, 8), num_experts=2 * size, ep_size=size, k=1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs, penalty, _ = self.experts(self.first(inputs))
        loss: torch.Tensor = outputs.square().mean() + 0.01 * penalty
        return loss


def experts(rank: int, size: int) -> object:
    """Send each row to its expert, on any rank."""
    torch.manual_seed(0)
    model = _Experts(size)
    groups = {"params": list(model.parameters()), "name": "parameters"}
    optimizer = torch.optim.SGD(split_params_into_different_moe_groups_for_optimizer(groups), lr=0.1)
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config(size), dist_init_required=False)
    generator, losses = torch.Generator().manual_seed(rank), []
    for _ in range(4):
        loss = engine(torch.randn(ROWS, 8, generator=generator))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses


USES: dict[str, Callable[[int, int], object]] = {f"zero-{stage}": partial(zero, stage) for stage in range(4)}
USES |= {"pipeline": pipeline, "experts": experts}

if __name__ == "__main__":
    run_named(USES)
