"""Calls, groups and worlds leave nothing on a GPU."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest
import torch

import collshim
from collshim import Communicator
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE, busy, require_gpu
from tests.gpu.scenarios import ALL, given, results

require_gpu()


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_thousand_calls_take_no_memory() -> None:
    with world_of_one() as world:
        x = torch.ones(1 << 20, device=DEVICE)

        def held_after(calls: int) -> int:
            for _ in range(calls):
                world.communicator.all_reduce(x).wait()
            torch.cuda.synchronize()
            gc.collect()  # what other tests left
            return torch.cuda.memory_allocated()

        assert held_after(10) == held_after(990)


@pytest.mark.parametrize("name", sorted(ALL))
def test_dropped_result_frees_its_memory(name: str) -> None:
    with world_of_one() as world:
        x, parts = given(torch.float32, world.communicator, DEVICE, rows=1 << 16)
        results(ALL[name](world.communicator, x, parts))
        torch.cuda.synchronize()
        held = torch.cuda.memory_allocated()
        for _ in range(3):
            results(ALL[name](world.communicator, x, parts))
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() <= held


def test_closing_a_group_finishes_pending_calls() -> None:
    x, out = torch.full((1 << 20,), 3.0, device=DEVICE), torch.zeros(1 << 20, device=DEVICE)
    with world_of_one() as world:
        world.communicator.all_reduce(x).wait()
        busy()
        world.communicator.all_reduce(x, out=out).wait()
    torch.cuda.synchronize()
    assert bool((out == 3).all())


def test_groups_leave_no_thread_behind() -> None:
    with world_of_one() as world:

        def threads_after(groups: int) -> int:
            for _ in range(groups):
                part = world.communicator.subgroup([0])
                assert part is not None
                part.all_reduce(torch.ones(4, device=DEVICE)).wait()
                part.close()
                torch.cuda.synchronize()
            return threads()

        assert threads_after(3) + 2 >= threads_after(10)


def test_worlds_can_follow_each_other() -> None:
    for _ in range(3):
        with world_of_one() as world:
            assert world.communicator.all_reduce(torch.ones(2, device=DEVICE)).wait().tolist() == [1, 1]


def on_one_gpu() -> list[Any]:
    """In two processes gloo serves CPU tensors, but NCCL accepts no GPU twice."""
    comm: Communicator = collshim.current().communicator
    torch.cuda.init()
    found: list[Any] = [comm.all_reduce(torch.full((4096,), comm.rank + 1.0)).wait().unique().tolist()]
    try:
        comm.all_reduce(torch.ones(2, device=DEVICE)).wait()
    except Exception as error:
        found.append(isinstance(error, collshim.CommunicationError))
    return found


def test_two_processes_on_one_gpu_are_reported() -> None:
    """They must fail, with an error of collshim's, and nobody hangs or dies."""
    if torch.cuda.device_count() > 1:
        pytest.skip("each process takes GPU 0; meant for machines with one")
    with collshim.options(timeout=60.0):
        found = collshim.launch(on_one_gpu, 2, ranks="processes", timeout=200)
    assert found == [[[3.0], True]] * 2
