"""NCCL's part of a group, torch's ``ProcessGroupNCCL``: how it is made, and how it ends."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroup

from collshim.accelerator import ACCELERATOR
from collshim.transports.processes.backend import accelerators_backend

PATIENCE = 10
"""torch's own deadlines in multiples of ours: our waits name the missing ranks, torch's would only end the group."""


def nccl_is_there() -> bool:
    """Whether torch has NCCL, or its like for another accelerator, and sees a GPU."""
    return accelerators_backend() is not None


def made_nccl(store: Any, key: str, ranks: Sequence[int], rank: int, timeout: float) -> Any:
    """NCCL's ProcessGroup; torch's log, its flight recorder and its profiler name it by ``key``."""
    kind = accelerators_backend()
    options = kind.Options()
    options.group_name, options.global_ranks_in_group = key, [*ranks]
    options._timeout = timedelta(seconds=PATIENCE * timeout)  # then torch's watchdog ends the process: ours is first
    return kind(store, rank, len(ranks), options)


def never_free(groups: Sequence[ProcessGroup]) -> None:
    """Let no destructor run, also when the interpreter takes down what it holds."""
    for group in groups:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def end_nccl(group: ProcessGroup, *, failed: bool) -> None:
    """End the group's NCCL: once what is on its way is done or, where a rank has failed, at once.

    Left to its destructor it would end what is on its way in either case.
    """
    if not nccl_is_there():
        return
    nccl: Any = group._get_backend(torch.device(ACCELERATOR))
    nccl.abort() if failed else nccl.shutdown()
