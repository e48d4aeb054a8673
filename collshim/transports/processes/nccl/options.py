"""torch's options for NCCL's ProcessGroup: options that a program chooses, and options that identify the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from collshim.accelerator import BACKEND
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.transports.processes.backend import accelerators_backend

GroupOptions: TypeAlias = Any
"""``torch.distributed.ProcessGroupNCCL.Options``, which a build of torch without NCCL lacks."""

_OF_THE_GROUP = ("backend", "group_name", "global_ranks_in_group", "split_from", "split_color", "lazy_init")
"""Options that identify the group, the communicator that it was split from, and when NCCL connects the ranks."""


def named_options(key: str, ranks: Sequence[int]) -> GroupOptions:
    """Return the options of a new group of these ranks of the world."""
    options = accelerators_backend().Options()
    options.group_name, options.global_ranks_in_group = key, [*ranks]
    if hasattr(options, "lazy_init"):  # otherwise the newer engine connects the ranks immediately, without a deadline
        options.lazy_init = True
    return options


def set_options(nccl: GroupOptions, given: GroupOptions) -> None:
    """Set the program's options on NCCL's ProcessGroup, which has not connected its ranks yet."""
    own = nccl.options
    has_priority = own.is_high_priority_stream  # set by TORCH_NCCL_HIGH_PRIORITY
    _copy(given, own)
    own.is_high_priority_stream = own.is_high_priority_stream or has_priority


def copied(options: GroupOptions, name: str, ranks: Sequence[int]) -> GroupOptions:
    """Return options for a smaller group, named ``name``, with this group's choices and deadline."""
    made = named_options(name, ranks)
    _copy(options, made)
    made._timeout = options._timeout
    return made


def _copy(given: GroupOptions, own: GroupOptions) -> None:
    for name in chosen(given):
        setattr(own, name, getattr(given, name))


def chosen(options: GroupOptions) -> dict[str, object]:
    """Return the fields that a program chooses in torch's NCCL options: all that do not identify the group.

    ``config`` is included field by field, and so are fields that a newer torch adds. None means torch's defaults.
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
    """Raise an error if these are not options for NCCL, or ask for a communicator that is split off or remade."""
    kind = accelerators_backend()
    if kind is not None and not isinstance(options, kind.Options):
        expected = f"those of torch.distributed.ProcessGroup{BACKEND}.Options"
        raise ArgumentTypeError(f"NCCL's options are a {type(options).__qualname__}, should be {expected}")
    if getattr(options, "split_from", None) is not None:
        text = "NCCL's options have split_from, should have none: each group has its own communicator"
        raise ArgumentValueError(text)
    if getattr(options, "enable_reconfigure", False):  # since torch 2.15
        raise ArgumentValueError("NCCL's options have enable_reconfigure, should not: make a new group instead")
