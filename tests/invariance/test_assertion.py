"""`assert_rank_invariant` in tests."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from collshim.testing import assert_rank_invariant
from tests.invariance.steps import average, batch, model, part, right

pytestmark = pytest.mark.threads


def wrong(batch: Tensor) -> tuple[Tensor, nn.Module]:
    """Sum where a mean is meant."""
    made = model()
    loss = made(part(batch)).square().mean()
    loss.backward()
    for parameter in made.parameters():
        dist.all_reduce(parameter.grad)
    return loss, made


def test_right_step_passes() -> None:
    assert_rank_invariant(right, batch(), ranks=(1, 2, 4))


def test_wrong_step_is_reported() -> None:
    with pytest.raises(AssertionError, match=r"(?s)all 4 gradients are W times.*all_reduce\(sum\).*Fix: "):
        assert_rank_invariant(wrong, batch(), ranks=(1, 2), kind="threads")


def test_step_of_a_test_is_run_on_threads() -> None:
    def local(rows: Tensor) -> tuple[Tensor, nn.Module]:
        made = nn.Linear(3, 1)  # drawn from the rank's own generator
        loss = made(part(rows)).square().mean()
        loss.backward()
        average(made)
        return loss, made

    assert_rank_invariant(local, batch(), ranks=(1, 2, 4))


def test_step_without_a_batch() -> None:
    assert_rank_invariant(lambda: right(torch.ones(4, 3)), ranks=(1, 2))


@pytest.mark.ranks(2)
def test_ranks_assert_together() -> None:
    assert_rank_invariant(right, batch(), ranks=(1, 2), kind="threads")
    with pytest.raises(AssertionError, match="W times"):
        assert_rank_invariant(wrong, batch(), ranks=(1, 2), kind="threads")
