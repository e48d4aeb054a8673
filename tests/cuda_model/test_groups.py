"""torch's view of a group's NCCL, and the GPU of a rank that `launch` starts as a process."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
from torch import nn
from torch.distributed import HashStore
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import collshim
from collshim import Communicator
from collshim.torch.distributed.c10d.backend import NAME
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import among_gpus, device, values

require_model()


def told(comm: Communicator) -> Any:
    part = comm.subgroup([2, 0])
    if part is None:
        return None
    part.all_reduce(torch.ones(2, device=device())).wait()
    group: Any = part._transport.data_group  # type: ignore[attr-defined]
    options = group._get_backend(device()).options
    return group.group_name, group.group_desc, options.group_name, options.global_ranks_in_group


def test_torch_knows_the_name_and_ranks_of_a_group() -> None:
    first, other, last = values(among_gpus(told, 3))
    assert first == last == ("all/2-0#1/data", "collshim", "all/2-0#1/data", [2, 0])
    assert other is None


CUPY = """
import types

used = []


class Device:
    def __init__(self, number):
        self.number = number

    def use(self):
        used.append(self.number)


cuda = types.SimpleNamespace(Device=Device)
"""
"""The parts of CuPy that are needed here: CuPy itself needs a driver."""


def own_gpu_of_cupy(folder: str, is_first: bool) -> tuple[bool, list[int]]:
    """Import CuPy before torch uses CUDA, or afterwards."""
    if not is_first:
        torch.empty(1, device="cuda")
    was_imported = "cupy" in sys.modules
    sys.path.insert(0, folder)
    return was_imported, importlib.import_module("cupy").used


@pytest.mark.parametrize("is_first", [True, False])
def test_each_process_has_its_gpu_in_cupy_too(tmp_path: Path, is_first: bool) -> None:
    (tmp_path / "cupy.py").write_text(CUPY, encoding="utf-8")
    found = collshim.launch(partial(own_gpu_of_cupy, str(tmp_path), is_first), 3, ranks="processes", timeout=200)
    assert found == [(False, [rank]) for rank in range(3)]


SCRIPT = """
import sys, torch
assert not torch.cuda.is_initialized()
sys.path.insert(0, sys.argv[1])
import collshim
rank = collshim.current().rank
assert "cupy" not in sys.modules
import cupy
print(rank, torch.cuda.current_device(), cupy.used)
"""


def test_run_command_gives_each_process_a_gpu(tmp_path: Path) -> None:
    (tmp_path / "cupy.py").write_text(CUPY, encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "collshim", "run", "-n", "2", str(tmp_path / "script.py"), str(tmp_path)]
    surroundings = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=200, check=False)
    assert sorted(done.stdout.splitlines()) == [f"[rank {rank}] {rank} {rank} [{rank}]" for rank in range(2)], done


def own_gpu() -> tuple[bool, int, int]:
    before = torch.cuda.is_initialized()
    return before, torch.cuda.current_device(), torch.empty(1, device="cuda").device.index


def test_launch_gives_each_process_a_gpu() -> None:
    assert collshim.launch(own_gpu, 3, ranks="processes", timeout=200) == [(False, rank, rank) for rank in range(3)]


def trained(wrap: Callable[[nn.Module], nn.Module]) -> Any:
    """Make a step of torch's module over the backend; its default group was made with a device."""
    place = torch.device("cuda", 0)
    torch.distributed.init_process_group(NAME, store=HashStore(), rank=0, world_size=1, device_id=place)
    try:
        module = wrap(Scale().to(place))
        module(torch.ones(3, 2, device=place)).sum().backward()
        gradient: Any = next(module.parameters()).grad
        return getattr(gradient, "full_tensor", lambda: gradient)().tolist()
    finally:
        torch.distributed.destroy_process_group()


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factors


def sharded(module: nn.Module) -> nn.Module:
    whole: Any = fully_shard(module)
    whole.set_allocate_memory_from_process_group_for_comm(True)  # if the group has any
    return module


def replicated(module: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(module, device_ids=[0])


@pytest.mark.parametrize("wrap", [replicated, sharded])
def test_torch_modules_work_after_init_with_a_device(wrap: Callable[[nn.Module], nn.Module]) -> None:
    assert trained(wrap) == [3.0, 3.0]


def test_torch_groups_take_a_device() -> None:
    place = torch.device("cuda", 0)
    torch.distributed.init_process_group(NAME, store=HashStore(), rank=0, world_size=1, device_id=place)
    try:
        group: Any = torch.distributed.new_group([0], device_id=place)
        torch.distributed.all_reduce(x := torch.ones(2, device=place), group=group)
        mesh = init_device_mesh("cuda", (1, 1), mesh_dim_names=("rows", "columns"))
        assert (x.tolist(), mesh["rows"].size()) == ([1.0, 1.0], 1)
    finally:
        torch.distributed.destroy_process_group()
