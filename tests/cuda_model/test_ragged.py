"""Collectives of unequal parts take one launch of NCCL each, on the group's communicator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim import Communicator
from tests.cuda_model import model
from tests.cuda_model.hardware import IS_NCCL2, require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values

require_model()

SIZE = 3


def rows(count: int) -> Tensor:
    return torch.full((count, 2), float(count), device=device())


def _lists(comm: Communicator) -> list[Tensor]:
    return [rows(rank + 1) for rank in range(comm.size)]


POSTS: dict[str, Callable[[Communicator], Any]] = {
    "all_gather": lambda comm: comm.all_gather_ragged(rows(comm.rank + 1)),
    "all_gather into a list": lambda comm: comm.all_gather(rows(comm.rank + 1), out=_lists(comm)),
    "gather": lambda comm: comm.gather_ragged(rows(comm.rank + 1), 1),
    "scatter": lambda comm: comm.scatter(_lists(comm) if comm.rank == 1 else None, 1, discovers=True),
    "reduce_scatter": lambda comm: comm.reduce_scatter(_lists(comm)),
    "reduce_scatter avg": lambda comm: comm.reduce_scatter(_lists(comm), "avg"),
    "all_to_all": lambda comm: comm.all_to_all(_lists(comm), discovers=True),
}


def launched(comm: Communicator, name: str) -> tuple[int, int]:
    comm.all_reduce(rows(1)).wait()
    torch.cuda.synchronize()
    comm.barrier().wait()
    if comm.rank == 0:
        model.clear()
    comm.barrier().wait()
    POSTS[name](comm).wait()
    torch.cuda.synchronize()
    comm.barrier().wait()
    counts = model.count("launches"), model.count("communicators")
    comm.barrier().wait()
    return counts


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("name", POSTS)
def test_unequal_parts_are_one_launch(name: str, checks: bool) -> None:
    found = values(among_gpus(launched, SIZE, name, setting=Setting(checks=checks)))
    is_one_call = name in ("gather", "scatter", "all_to_all")
    launches = (
        1 if is_one_call or not IS_NCCL2 else SIZE
    )  # torch's newer engine starts coalesced collectives one by one
    assert found == [(SIZE * launches, 0)] * SIZE
