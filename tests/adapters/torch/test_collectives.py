"""Collectives outside their group, and under their old and private names, warn."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Run
from tests.adapters.torch.calls.collectives import EACH


@pytest.mark.parametrize("name", EACH)
def test_call_outside_the_group_warns_and_does_nothing(run: Run, name: str) -> None:
    def rank() -> Any:
        group = dist.new_group([0])
        one, two, whole = torch.ones(1), [torch.ones(1), torch.ones(1)], torch.ones(2)
        return EACH[name](one, two, whole, group) if dist.get_rank() == 1 else None

    what = rf"Running {name} on global rank 1 which does not belong to the given group\."
    with pytest.warns(UserWarning, match=what):
        assert run(rank, 2) == [None, None]


@pytest.mark.parametrize("name", ["_all_gather_base", "_reduce_scatter_base"])
def test_private_name_is_reported_as_private(name: str) -> None:
    words = f"`torch.distributed.{name}` is a private function and will be deprecated"
    with pytest.warns(FutureWarning, match=words) as told, pytest.raises(TypeError):
        getattr(dist, name)(None, None)
    assert told[0].filename == __file__


@pytest.mark.parametrize("name", ["all_gather_into_tensor", "reduce_scatter_tensor"])
def test_old_names_warn_as_torch_does(run: Run, name: str) -> None:
    with pytest.warns(FutureWarning, match=f"`torch.distributed.{name}` is deprecated"):
        run(lambda: getattr(dist, name)(torch.zeros(2), torch.ones(2)), 1)


def test_barrier_takes_devices(run: Run) -> None:
    assert run(lambda: dist.barrier(device_ids=[0]), 2) == [None, None]
