"""Training steps of DistributedDataParallel on two processes: over torch's gloo, and over the backend collshim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
import torch.testing._internal.distributed.fake_pg  # makes the backend "fake" known
from torch import Tensor, nn

import collshim
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.membership import require_membership
from tests.benchmarks.insides import unchecked
from tests.benchmarks.measure import DEADLINE, Contender, Samples, concatenate, in_turns, slowest, tenth
from tests.benchmarks.ranks import adapter_group, torchs_gloo

SIZE = 2

GLOO, NO_EXCHANGE = "gloo", "no exchange"

Steps = Mapping[str, Samples]
"""Seconds of a step in each repetition, by model and contender."""


class _Block(nn.Module):
    """A residual block of two convolutions; the input is added in the part of the channels that it has."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride = after // before
        self.layers = nn.Sequential(
            nn.Conv2d(before, after, 3, self.stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.more = after - before

    def forward(self, images: Tensor) -> Tensor:
        beside = nn.functional.pad(images[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return torch.relu(self.layers(images) + beside)


def _resnet() -> tuple[nn.Module, Tensor]:
    """Return ResNet-20 for images of 32 by 32, 0.27 million parameters."""
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [_Block(before, after) for before, after in pairwise(widths)]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), *blocks, *last), torch.randn(4, 3, 32, 32)


def _mlp(width: int, depth: int, batch: int) -> tuple[nn.Module, Tensor]:
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(batch, width)


MODELS: dict[str, tuple[Callable[[], tuple[nn.Module, Tensor]], int]] = {
    "MLP, 12 thousand parameters": (lambda: _mlp(64, 3, 32), 150),
    "ResNet-20": (_resnet, 15),
    "MLP, 4 million parameters": (lambda: _mlp(1024, 4, 16), 30),
}
"""Each model with an input, and how often its step is repeated in a block."""


def measure_steps(share: float, blocks: int) -> Steps:
    """Measure a step of every model; ``share`` is that of the usual repetitions."""
    with collshim.options(check=True):
        found = [
            collshim.launch(among, SIZE, ranks="processes", args=(share,), timeout=DEADLINE) for _ in range(blocks)
        ]
    return {
        name: concatenate([slowest([rank[name] for rank in ranks]) for ranks in found])  # the last rank ends a step
        for name in MODELS
    }


def less_communication(samples: Samples, kind: str) -> float:
    """Return how many times as long a step communicates over gloo as over the backend, by tenth percentiles.

    A step communicates for as long as it takes longer than one without exchange.
    """
    least = tenth(samples[NO_EXCHANGE])
    return (tenth(samples[GLOO]) - least) / max(tenth(samples[kind]) - least, 1e-9)


def among(share: float) -> dict[str, Samples]:
    """Measure one rank's steps."""
    world = collshim.current()
    torch.set_num_threads(1)
    with torchs_gloo(world) as barrier, adapter_group():
        apart = unchecked(world)
        state = require_membership()
        groups = {
            GLOO: torch.distributed.group.WORLD,
            "check off": state.add(CollectiveGroup(apart, "collshim", "bench/steps", None, None)),
            "check on": state.default,
            NO_EXCHANGE: torch.distributed.new_group(backend="fake"),
        }
        return {
            name: in_turns(
                {kind: _step(make, group, exchanges=kind != NO_EXCHANGE) for kind, group in groups.items()},
                max(2, int(repeats * share)),
                barrier,
            )
            for name, (make, repeats) in MODELS.items()
        }


def _unchanged(bucket: torch.distributed.GradBucket) -> torch.futures.Future[Tensor]:
    """Return a future of the bucket's gradients as they are."""
    found: torch.futures.Future[Tensor] = torch.futures.Future()
    found.set_result(bucket.buffer())
    return found


def _step(make: Callable[[], tuple[nn.Module, Tensor]], group: Any, *, exchanges: bool) -> Contender:
    torch.manual_seed(0)
    module, images = make()
    model = nn.parallel.DistributedDataParallel(module, process_group=group)
    if not exchanges:  # the works of torch's fake group have no future
        model.register_comm_hook(None, lambda state, bucket: _unchanged(bucket))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()

    for _ in range(3):  # DDP makes its buckets anew after the first
        step()
    return step
