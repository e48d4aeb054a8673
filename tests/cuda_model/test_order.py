"""Every rank gives NCCL the calls of all groups in posting order, because a GPU may run one kernel at a time."""

from __future__ import annotations

from typing import Any

import torch

from collshim import Communicator, Work
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import among_gpus, device, values

require_model()

NUMBERS = 5000
TURNS = 20


def ones() -> torch.Tensor:
    return torch.ones(NUMBERS, device=device())


def of_two_groups(comm: Communicator) -> None:
    """Rank 1 knows nothing of the first call's data, not even its device."""
    part = comm.subgroup([0, 1])
    assert part is not None
    for group in (comm, part):
        group.all_reduce(ones()).wait()
    torch.cuda.synchronize()
    for _ in range(TURNS):
        first = comm.broadcast(ones() if comm.rank == 0 else None, 0, discovers=True)
        second = part.all_reduce(ones())
        parts = ones().view(2, -1) if comm.rank == 1 else None
        third: Work[Any] = comm.scatter(parts, 1, discovers=True)
        for work in (third, second, first):
            work.wait()
        torch.cuda.synchronize()


def test_calls_of_two_groups_start_in_posting_order() -> None:
    with model.setting("one_nccl_kernel", 1), model.setting("patience", 5):
        values(among_gpus(of_two_groups, 2))


def to_the_current_gpu(comm: Communicator) -> tuple[torch.device, torch.device]:
    found = comm.broadcast(ones() if comm.rank == 0 else None, 0, discovers=True).wait()
    assert found is not None
    return found.device, device()


def test_received_tensor_is_on_the_ranks_own_gpu() -> None:
    for found, own in values(among_gpus(to_the_current_gpu, 3)):
        assert found == own
