"""Schedules of torch.distributed.pipelining, beside the same model in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    pipeline,
)

from tests.upstream.programs.ranks import run_named

MICRO = 8
LOSS = nn.MSELoss()


def layers(count: int) -> list[nn.Sequential]:
    """Return the same layers on every rank."""
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(count)]


def batch() -> tuple[Tensor, Tensor]:
    """Return inputs and targets."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(16, 6, generator=generator), torch.randn(16, 6, generator=generator)


def alone(count: int) -> list[list[Tensor]]:
    """Return each layer's gradients in one process."""
    parts = layers(count)
    inputs, targets = batch()
    LOSS(nn.Sequential(*parts)(inputs), targets).backward()
    return [[parameter.grad for parameter in part.parameters() if parameter.grad is not None] for part in parts]


def step(schedule: Any, is_first: bool, is_last: bool) -> list[float]:
    """Run a step, and return the losses that this rank knows."""
    inputs, targets = batch()
    losses: list[Tensor] = []
    arguments = (inputs,) if is_first else ()
    schedule.step(*arguments, **({"target": targets, "losses": losses} if is_last else {}))
    return [loss.item() for loss in losses]


def compare(stages: list[tuple[int, nn.Module]], count: int) -> list[float]:
    """Compare the gradients of this rank's stages with those of one process; return their sums."""
    wanted, sums = alone(count), []
    for index, module in stages:
        for parameter, gradient in zip(module.parameters(), wanted[index], strict=True):
            torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-4)
            sums.append(float(gradient.sum()))
    return sums


def single(kind: Callable[..., Any], rank: int, size: int) -> object:
    """Run a schedule with one stage for each rank."""
    module = layers(size)[rank]
    stage = PipelineStage(module, rank, size, torch.device("cpu"))
    losses = step(kind(stage, MICRO, loss_fn=LOSS), rank == 0, rank == size - 1)
    return {"losses": losses, "gradients": compare([(rank, module)], size)}


def several(kind: Callable[..., Any], rank: int, size: int, vee: bool = False) -> object:
    """Run a schedule with two stages for each rank."""
    count = 2 * size
    places = [rank, count - 1 - rank] if vee else [rank, rank + size]
    parts = layers(count)
    stages = [PipelineStage(parts[place], place, count, torch.device("cpu")) for place in places]
    losses = step(kind(stages, MICRO, loss_fn=LOSS), rank == 0, count - 1 in places)
    return {"losses": losses, "gradients": compare([(place, parts[place]) for place in places], count)}


def traced(rank: int, size: int) -> object:
    """Let torch cut the model itself."""
    model = nn.Sequential(*layers(size))
    split = {str(index): SplitPoint.BEGINNING for index in range(1, size)}
    pipe = pipeline(model, mb_args=(batch()[0][: 16 // MICRO],), split_spec=split)
    stage = pipe.build_stage(rank, torch.device("cpu"))
    return step(ScheduleGPipe(stage, MICRO, loss_fn=LOSS), rank == 0, rank == size - 1)


USES: dict[str, Callable[[int, int], object]] = {
    "gpipe": lambda rank, size: single(ScheduleGPipe, rank, size),
    "1f1b": lambda rank, size: single(Schedule1F1B, rank, size),
    "interleaved": lambda rank, size: several(ScheduleInterleaved1F1B, rank, size),
    "looped-bfs": lambda rank, size: several(ScheduleLoopedBFS, rank, size),
    "zero-bubble": lambda rank, size: several(ScheduleInterleavedZeroBubble, rank, size),
    "zbv": lambda rank, size: several(ScheduleZBVZeroBubble, rank, size, vee=True),
    "traced": traced,
}


if __name__ == "__main__":
    run_named(USES)
