"""Tensors on meta, and fake ones: nothing is moved and every call succeeds, as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import collshim.torch.distributed as dist
from tests.adapters.conftest import each_of
from tests.adapters.torch.calls.collectives import EACH

CALLS: dict[str, Callable[..., Any]] = {**EACH, "send": lambda t, two, whole: dist.send(t, 1 - dist.get_rank())}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("fake", [False, True])
@each_of(2, gives=[None, None])
def test_nothing_is_moved(fake: bool, name: str) -> Any:
    if dist.get_rank() == 1:
        return None  # nobody waits for it
    with FakeTensorMode() if fake else torch.device("meta"):
        return CALLS[name](torch.zeros(2), [torch.zeros(2), torch.zeros(2)], torch.zeros(4))


@each_of(1, gives=[True])
def test_work_is_complete_at_once() -> Any:
    work = dist.all_reduce(torch.zeros(2, device="meta"), async_op=True)
    return work is not None and work.wait()
