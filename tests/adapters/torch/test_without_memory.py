"""Tensors on meta, and fake ones: nothing is moved and every call succeeds, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Run

CALLS: list[Callable[[Any, Any], Any]] = [
    lambda t, whole: dist.all_reduce(t),
    lambda t, whole: dist.broadcast(t, 0),
    lambda t, whole: dist.reduce(t, 0),
    lambda t, whole: dist.all_gather([t, t], t),
    lambda t, whole: dist.all_gather_single(whole, t),
    lambda t, whole: dist.gather(t, [t, t] if dist.get_rank() == 0 else None),
    lambda t, whole: dist.scatter(t, [t, t] if dist.get_rank() == 0 else None),
    lambda t, whole: dist.reduce_scatter(t, [t, t]),
    lambda t, whole: dist.reduce_scatter_single(t, whole),
    lambda t, whole: dist.all_to_all([t, t], [t, t]),
    lambda t, whole: dist.all_to_all_single(t, t),
    lambda t, whole: dist.send(t, 1 - dist.get_rank()),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fake", [False, True])
def test_nothing_is_moved(run: Run, fake: bool, call: Callable[[Any, Any], Any]) -> None:
    def rank() -> Any:
        if dist.get_rank() == 1:
            return None  # nobody waits for it
        if not fake:
            return call(torch.zeros(2, device="meta"), torch.zeros(4, device="meta"))
        with FakeTensorMode():
            return call(torch.zeros(2), torch.zeros(4))

    assert run(rank, 2) == [None, None]


def test_its_work_is_complete_at_once(run: Run) -> None:
    def rank() -> Any:
        work = dist.all_reduce(torch.zeros(2, device="meta"), async_op=True)
        return work is not None and work.wait()

    assert run(rank, 1) == [True]
