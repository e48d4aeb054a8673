"""NCCL's part of a group, torch's ``ProcessGroupNCCL``: how it is made, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import torch
from torch.distributed import ProcessGroup, Store

from collshim.accelerator import ACCELERATOR, BACKEND
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.transports.processes.backend import accelerators_backend

GroupOptions: TypeAlias = Any
"""``torch.distributed.ProcessGroupNCCL.Options``, which a torch without NCCL lacks."""

_OF_THE_GROUP = ("backend", "group_name", "global_ranks_in_group", "split_from", "split_color")
"""Options that identify the group, and the communicator that it was split from."""

PATIENCE = 10
"""torch's deadlines as multiples of ours: our waits name the missing ranks, torch's would only end the group."""


def nccl_is_there() -> bool:
    """Return whether torch has NCCL, or its counterpart for another accelerator, and sees a GPU."""
    return accelerators_backend() is not None


def made_nccl(store: Store, key: str, ranks: Sequence[int], rank: int, timeout: float) -> Any:
    """Make NCCL's ProcessGroup; torch's log, flight recorder and profiler name it by ``key``."""
    kind = accelerators_backend()
    options = kind.Options()
    options.group_name, options.global_ranks_in_group = key, [*ranks]
    options._timeout = timedelta(seconds=PATIENCE * timeout)  # at which torch's watchdog ends the process, after ours
    return kind(store, rank, len(ranks), options)


def set_options(nccl: GroupOptions, given: GroupOptions) -> None:
    """Set the program's options on NCCL's ProcessGroup, which has not connected its ranks yet."""
    own = nccl.options
    has_priority = own.is_high_priority_stream  # set by TORCH_NCCL_HIGH_PRIORITY
    for name in chosen(given):
        setattr(own, name, getattr(given, name))
    own.is_high_priority_stream = own.is_high_priority_stream or has_priority


def chosen(options: GroupOptions) -> dict[str, object]:
    """Return what a program chooses with torch's NCCL options: all fields that do not identify the group.

    ``config`` comes field by field. Fields that a newer torch adds are included. None stands for torch's defaults.
    """
    kind = accelerators_backend()
    if options is None:
        options = None if kind is None else kind.Options()
    found = {name: value for name, value in _fields(options).items() if name not in _OF_THE_GROUP}
    return {name: _fields(value) if name == "config" else value for name, value in found.items()}


def _fields(options: GroupOptions) -> dict[str, object]:
    named = {name: getattr(options, name) for name in dir(options) if not name.startswith("_")}
    return {name: value for name, value in named.items() if not callable(value)}


def refuse_options(options: GroupOptions) -> None:
    """Raise an error if these are not options of NCCL, or if they split an earlier communicator."""
    kind = accelerators_backend()
    if kind is not None and not isinstance(options, kind.Options):
        expected = f"those of torch.distributed.ProcessGroup{BACKEND}.Options"
        raise ArgumentTypeError(f"NCCL's options are a {type(options).__qualname__}, should be {expected}")
    if getattr(options, "split_from", None) is not None:
        text = "NCCL's options have split_from, should have none: each group has its own communicator"
        raise ArgumentValueError(text)


def end_nccl(group: ProcessGroup, *, failed: bool) -> None:
    """End the group's NCCL: after the calls under way are done or, if a rank has failed, at once.

    Its destructor would abort the calls under way in either case.
    """
    if not nccl_is_there():
        return
    nccl: Any = group._get_backend(torch.device(ACCELERATOR))
    nccl.abort() if failed else nccl.shutdown()
