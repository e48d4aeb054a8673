"""A training step on CUDA tensors, on one rank and on several."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from collshim.invariance.check import DIFFERENT, SAME, check
from collshim.invariance.program import Program, Switches
from tests.gpu.hardware import require_gpu

require_gpu()

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def step(factor: float) -> tuple[Tensor, nn.Module]:
    """Train on this rank's part, and scale the averaged gradients."""
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.1), nn.GELU(), nn.Linear(32, 4)).cuda()
    whole = torch.randn(8, 16, generator=torch.Generator().manual_seed(1))
    part = whole.chunk(dist.get_world_size())[dist.get_rank()].cuda()
    loss = model(part).square().mean()
    loss.backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad)
        if dist.get_world_size() > 1:
            parameter.grad.div_(factor * dist.get_world_size())
    return loss, model


def right() -> tuple[Tensor, nn.Module]:
    return step(1.0)


def wrong() -> tuple[Tensor, nn.Module]:
    return step(2.0)


def test_right_step_is_the_same() -> None:
    report = check(Program("right", right), (2, 4), None, Switches(kind="threads"))
    assert (report.code, report.verdict()) == (SAME, report.verdict())


def test_wrong_step_is_named() -> None:
    report = check(Program("wrong", wrong), (2,), None, Switches(kind="threads"))
    assert report.code == DIFFERENT
    assert {finding.kind for finding in report.comparisons[0].parameters} == {"1/W"}
    assert report.culprits[0].what == "div_"
