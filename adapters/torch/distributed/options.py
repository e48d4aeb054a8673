"""``pg_options``: the options with which NCCL connects a group of processes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed
from torch.distributed import default_pg_timeout

from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.torch.distributed.arguments import warn

_KINDS = ("ProcessGroupNCCL", "ProcessGroupXCCL", "ProcessGroupHCCL")


def require_options(pg_options: Any, timeout: timedelta | None) -> None:
    """Refuse ``pg_options`` that are not NCCL's, before anything is sent; None stands for torch's defaults."""
    if pg_options is None:
        return
    kinds = tuple(kind.Options for name in _KINDS if (kind := getattr(torch.distributed, name, None)) is not None)
    if not isinstance(pg_options, kinds):
        given = type(pg_options).__qualname__
        text = f"Expected pg_options argument to be of type ProcessGroupNCCL.Options, got {given}"
        refuse(AssertionError, f"{text}: only collshim sets up gloo, which carries CPU tensors")
    if getattr(pg_options, "split_from", None) is not None:
        text = "pg_options.split_from is set, should not be: each group has its own communicator"
        refuse(ValueError, text)
    if pg_options._timeout not in (timeout, _default_timeout()):
        warn("pg_options._timeout was specified, but timeout kwarg has a default value that will always override it.")


def give_options(comm: Communicator, pg_options: Any) -> None:
    """Let NCCL connect the group with these options; refuse them if it has already connected it with different ones."""
    if pg_options is not None:
        comm.set_nccl_options(pg_options)


def _default_timeout() -> timedelta:
    of_nccl: timedelta | None = getattr(torch.distributed.distributed_c10d, "default_pg_nccl_timeout", None)
    return of_nccl or default_pg_timeout
