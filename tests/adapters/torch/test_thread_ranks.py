"""Ranks that are threads: torch.distributed itself, and code that uses it, sees each rank's own default group."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
import torch.distributed as torchs
from torch.distributed import distributed_c10d

import collshim
import collshim.torch.distributed as dist
from tests.adapters.torch.test_ddp import STEPS

SIZE = 3


def _on_threads(rank: Any, size: int = SIZE) -> list[Any]:
    return collshim.launch(rank, size, timeout=200)


def _asked() -> tuple[Any, ...]:
    return torchs.is_initialized(), torchs.get_rank(), torchs.get_world_size(), torchs.get_backend()


def test_torch_answers_as_the_adapter_does() -> None:
    def rank() -> Any:
        before = torchs.is_initialized()
        dist.init_process_group("gloo")
        return before, _asked()

    assert _on_threads(rank) == [(False, (True, rank, SIZE, "collshim")) for rank in range(SIZE)]


def test_library_mean_covers_all_ranks() -> None:
    def mean(value: float) -> float:
        tensor = torch.tensor(value)
        if torchs.is_available() and torchs.is_initialized():
            torchs.all_reduce(tensor)
            tensor /= torchs.get_world_size()
        return tensor.item()

    def rank() -> float:
        dist.init_process_group("gloo")
        return mean(float(dist.get_rank()))

    assert _on_threads(rank) == [1.0] * SIZE


def test_started_thread_sees_the_world_of_its_rank() -> None:
    def rank() -> Any:
        dist.init_process_group("gloo")
        heard: list[Any] = []
        thread = threading.Thread(target=lambda: heard.append(_asked()))
        thread.start()
        thread.join(20)
        return heard[0]

    assert _on_threads(rank) == [(True, rank, SIZE, "collshim") for rank in range(SIZE)]


def test_torch_and_adapter_share_their_groups() -> None:
    def rank() -> Any:
        dist.init_process_group("gloo")
        ours: Any
        theirs: Any
        ours, theirs = dist.new_group([2, 0], sort_ranks=False), torchs.new_group([1, 2])
        told = []
        for group, ranks in ((ours, [2, 0]), (theirs, [1, 2])):
            if dist.get_rank() in ranks:
                torchs.broadcast(one := torch.tensor([dist.get_rank()]), src=ranks[0], group=group)
                dist.broadcast(other := torch.tensor([dist.get_rank()]), src=ranks[1], group=group)
                told.append((one.item(), other.item(), torchs.get_process_group_ranks(group)))
        return told

    turned, part = (2, 0, [2, 0]), (1, 2, [1, 2])
    assert _on_threads(rank) == [[turned], [part], [turned, part]]


def test_functional_collectives_find_the_group_by_name() -> None:
    from torch.distributed import _functional_collectives as functional

    def rank() -> Any:
        dist.init_process_group("gloo")
        whole: Any = torchs.group.WORLD
        return functional.all_reduce(torch.tensor([float(dist.get_rank())]), "sum", whole.group_name).tolist()

    assert _on_threads(rank) == [[3.0]] * SIZE


def test_sampler_and_mesh_use_the_calling_rank() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.utils.data.distributed import DistributedSampler

    def rank() -> Any:
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        sampler: Any = DistributedSampler(range(STEPS), shuffle=False)  # type: ignore[arg-type]
        return list(mesh.get_coordinate() or ()), list(sampler)

    assert _on_threads(rank, 4) == [
        ([0, 0], [0, 4, 8]),
        ([0, 1], [1, 5, 9]),
        ([1, 0], [2, 6, 0]),
        ([1, 1], [3, 7, 1]),
    ]


@pytest.mark.parametrize("module", [dist, torchs], ids=["the adapter", "torch"])
def test_destroying_the_group_removes_it_from_both(module: Any) -> None:
    def rank() -> Any:
        found = []
        for _ in range(2):
            dist.init_process_group("gloo")
            torchs.barrier()
            module.destroy_process_group()
            found.append((torchs.is_initialized(), dist.is_initialized()))
        return found

    assert _on_threads(rank) == [[(False, False)] * 2] * SIZE


def test_group_and_hook_of_the_process_stay_unchanged() -> None:
    hook = sys.excepthook
    torchs.init_process_group("gloo", store=torchs.HashStore(), rank=0, world_size=1)
    of_torch = sys.excepthook
    try:

        def rank() -> Any:
            dist.init_process_group("gloo")
            found = torchs.get_world_size()
            dist.destroy_process_group()
            return found

        assert _on_threads(rank) == [SIZE] * SIZE
        assert (torchs.get_world_size(), sys.excepthook) == (1, of_torch)
        torchs.all_reduce(torch.ones(1))
    finally:
        torchs.destroy_process_group()
        sys.excepthook = hook


def test_torch_record_is_restored_after_the_ranks() -> None:
    def leaves() -> None:
        dist.init_process_group("gloo")
        dist.destroy_process_group()

    def stays() -> None:
        dist.init_process_group("gloo")

    hook = sys.excepthook
    _on_threads(stays)
    assert not torchs.is_initialized()
    _on_threads(leaves)
    assert type(distributed_c10d._world) is distributed_c10d._World
    assert sys.excepthook is hook


def test_torch_init_names_the_function_for_threads() -> None:
    def rank() -> Any:
        torchs.init_process_group("collshim", store=torchs.HashStore(), rank=0, world_size=SIZE)

    with pytest.raises(collshim.RankError, match=r"before it calls collshim\.torch\.distributed\.init_process_group"):
        _on_threads(rank)
