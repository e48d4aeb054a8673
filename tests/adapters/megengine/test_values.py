"""What is particular to MegEngine's results: more dtypes, devices, modes, axes; memory; and the order of sends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim.megengine as mge
from collshim.megengine.core.ops.builtin import CollectiveComm
from collshim.megengine.functional import distributed as F
from tests.adapters.conftest import Run

dist = mge.distributed


def order(size: int, backwards: bool) -> list[int]:
    return list(range(size))[::-1] if backwards else list(range(size))


def summed_and_gathered(dtype: torch.dtype) -> list[torch.Tensor]:
    x = torch.tensor([0, 1, 2, 3]).to(dtype) + dist.get_rank()
    return [F.all_reduce_sum(x), F.all_gather(x)]


@pytest.mark.parametrize("dtype", [torch.int16, torch.int64, torch.bfloat16])
def test_dtypes_unknown_to_megengine_are_kept(run: Run, dtype: torch.dtype) -> None:
    for total, everything in run(summed_and_gathered, 2, dtype):
        assert total.dtype is everything.dtype is dtype
        assert (total.tolist(), everything.tolist()) == ([1, 3, 5, 7], [0, 1, 2, 3, 1, 2, 3, 4])


def twice(count: int) -> Any:
    if dist.get_rank() == 0:
        x = torch.ones(count)
        F.remote_send(x, 1)
        x.zero_()
        F.remote_send(torch.tensor([2.0, 3.0]), 1)
        return dist.group_barrier()
    dist.group_barrier()
    return F.remote_recv(0).sum().item(), F.remote_recv(0, inp=np.zeros(1))


@pytest.mark.parametrize("count", [1, 300_000], ids=["small", "large"])
def test_sends_arrive_in_order_with_values_when_sent(run: Run, count: int) -> None:
    _, (first, second) = run(twice, 2, count)
    assert first == count
    assert type(second) is np.ndarray
    assert second.tolist() == [2, 3]


def on_streams() -> list[Any]:
    x = torch.arange(2.0)
    return [F.all_reduce_sum(x, device=device) for device in ("xpu0:1", "xpux", "cpu0", "cpux:2")]


def test_known_streams_and_devices_are_accepted(run: Run) -> None:
    for found in run(on_streams, 2):
        assert [result.tolist() for result in found] == [[0, 2]] * 4


def by_mode() -> dict[str, Any]:
    x = torch.arange(2.0) + dist.get_rank()
    modes = ("REDUCE_SUM", "GATHER", "ALL_GATHER", "ALL_REDUCE_MIN")
    kinds = [getattr(CollectiveComm.Mode, mode) for mode in modes]
    by_kind = {kind.name: F.collective_comm(x, kind, dist.WORLD, None).tolist() for kind in kinds}
    assert by_kind == {mode: F.collective_comm(x, mode, dist.WORLD, None).tolist() for mode in modes}
    return by_kind


def test_collective_comm_returns_output_on_every_rank(run: Run) -> None:
    everywhere = {"ALL_GATHER": [0, 1, 1, 2], "ALL_REDUCE_MIN": [0, 1]}
    root, other = run(by_mode, 2)
    assert root == {"REDUCE_SUM": [1, 3], "GATHER": [0, 1, 1, 2], **everywhere}
    assert other == {"REDUCE_SUM": [0], "GATHER": [0], **everywhere}


def exchanged(name: str, axis: int) -> Any:
    axes: dict[str, Any] = {name: axis}
    return F.all_to_all(torch.arange(8.0).reshape(4, 2) + dist.get_rank(), **axes).tolist()


@pytest.mark.parametrize("name", ["split_axis", "concat_axis"])
def test_bool_axis_counts_as_its_integer(run: Run, name: str) -> None:
    assert run(exchanged, 2, name, True) == run(exchanged, 2, name, 1)
