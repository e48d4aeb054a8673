"""Make and end NCCL's part of a group, torch's ``ProcessGroupNCCL``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ProcessGroup, Store

from collshim.accelerator import ACCELERATOR, BACKEND
from collshim.errors import ArgumentValueError
from collshim.torch_release import HAS_NCCL2
from collshim.transports.processes.backend import accelerators_backend
from collshim.transports.processes.nccl.options import named_options
from collshim.transports.processes.nccl.paired import PairedNccl

_ENGINES = ("legacy", "nccl2")
"""The values of COLLSHIM_NCCL: ``ProcessGroupNCCL``, and ``ProcessGroupNCCL2``, which torch has since 2.15."""

PATIENCE = 10
"""torch's deadlines as multiples of collshim's, whose waits name missing ranks; torch's would only end the group."""


def nccl_is_there() -> bool:
    """Return whether torch has NCCL, or the counterpart of another accelerator, and sees a device."""
    return accelerators_backend() is not None


def made_nccl(store: Store, key: str, ranks: Sequence[int], rank: int, timeout: float) -> Any:
    """Make NCCL's ProcessGroup; torch's log, flight recorder and profiler name it by ``key``."""
    kind = _engine()
    options = named_options(key, ranks)
    options._timeout = timedelta(seconds=PATIENCE * timeout)  # then torch's watchdog ends the process
    return kind(store, rank, len(ranks), options)


def _engine() -> Any:
    """Return the class of the ProcessGroup; of the two in torch 2.15, return the one that COLLSHIM_NCCL names."""
    asked = os.environ.get("COLLSHIM_NCCL", "")
    if asked not in ("", *_ENGINES):
        raise ArgumentValueError(f"COLLSHIM_NCCL is {asked!r}, should be {' or '.join(_ENGINES)}")
    if asked != "nccl2" or BACKEND != "NCCL":
        return accelerators_backend()
    if not HAS_NCCL2:
        raise ArgumentValueError(f"COLLSHIM_NCCL is 'nccl2', but torch {torch.__version__} has no ProcessGroupNCCL2")
    return PairedNccl


def end_nccl(group: ProcessGroup, *, failed: bool) -> None:
    """End the group's NCCL after the calls in progress are over, or immediately if a rank has failed.

    Its destructor would abort the calls in progress in either case.
    """
    if not nccl_is_there():
        return
    nccl: Any = group._get_backend(torch.device(ACCELERATOR))
    nccl.abort() if failed else nccl.shutdown()
