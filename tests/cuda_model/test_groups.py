"""What torch knows of a group's NCCL, and which GPU a rank has that `launch` starts as a process."""

from __future__ import annotations

from typing import Any

import torch

import collshim
from collshim import Communicator
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


def test_torch_knows_the_name_and_the_ranks_of_a_group() -> None:
    first, other, last = values(among_gpus(told, 3))
    assert first == last == ("all/2-0#1/data", "collshim", "all/2-0#1/data", [2, 0])
    assert other is None


def own_gpu() -> tuple[bool, int, int]:
    before = torch.cuda.is_initialized()
    return before, torch.cuda.current_device(), torch.empty(1, device="cuda").device.index


def test_each_process_of_launch_has_a_gpu_of_its_own() -> None:
    assert collshim.launch(own_gpu, 3, ranks="processes", timeout=50) == [(False, rank, rank) for rank in range(3)]
