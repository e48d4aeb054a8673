"""Use torch's ProcessGroups for gloo and NCCL: their methods, dtypes and works, and the start of a call's data.

Method names that changed in torch 2.13 are looked up once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from collshim.accelerator import BACKEND, module
from collshim.arrays.dtypes import NATIVE
from collshim.errors import is_of_user
from collshim.layout import as_bytes
from collshim.transports.processes.port import CallOptions, Port

T = TypeVar("T")

_C: Any = import_module("torch._C._distributed_c10d")  # torch's stubs lack some of its names

Finish = Callable[[Any], Any]
Moving = tuple[Any, Any, "Finish | None"]
"""A transfer under way: the outputs, torch's work, and a function to apply to the outputs once the work is over."""

Output: TypeAlias = Any
"""Memory for a result: ``Parts``, as the collective needs them; None if the backend allocates it."""

Transfer = Callable[[Port, Any, Any], Moving]
"""Starts moving data, given a ProcessGroup, inputs, and outputs; outputs of None are allocated."""


class Singles(NamedTuple):
    """A class's methods for parts that lie end to end, whose names changed in torch 2.13."""

    all_gather: Callable[..., Any]
    reduce_scatter: Callable[..., Any]
    all_to_all: Callable[..., Any]


def _singles(kind: type) -> Singles:
    def method(*names: str) -> Callable[..., Any]:
        found: Callable[..., Any] = next(getattr(kind, name) for name in names if hasattr(kind, name))
        return found

    return Singles(
        method("all_gather_single", "_allgather_base"),
        method("reduce_scatter_single", "_reduce_scatter_base"),
        method("all_to_all_single", "alltoall_base"),
    )


OF_GROUP, OF_BACKEND = _singles(ProcessGroup), _singles(_C.Backend)  # dist.Backend is a list of names
"""A ProcessGroup looks up the backend in torch's dispatcher, which takes a fifth of a GPU call's time."""


class Endpoint(NamedTuple):
    """One rank's end of a call.

    Attributes:
        fresh: allocates the result of a rank without an ``out``.
        ragged: whether some rank's parts might be unequal; all ranks know it.
        singles: the methods of the group or backend that carries the call.
        is_in_line: whether NCCL's kernel is enqueued on the caller's stream, not on NCCL's own.
    """

    rank: int
    size: int
    fresh: Callable[[], Any]
    ragged: bool
    singles: Singles
    is_in_line: bool = False

    def options(self, kind: Callable[[], CallOptions]) -> CallOptions:
        """Return torch's options of a call, made by ``kind``."""
        options = kind()
        if self.is_in_line and hasattr(options, "asyncOp"):  # only some classes have it in older releases
            options.asyncOp = False
        return options


def as_is(tensor: Tensor) -> Tensor:
    """Return the tensor itself."""
    return tensor


def movable_view(dtype: torch.dtype | None) -> Callable[[Tensor], Tensor]:
    """Return a function that views a tensor in a dtype that every backend moves."""
    return as_is if dtype in NATIVE else as_bytes


def accelerators_backend() -> Any:
    """Return the class of NCCL's ProcessGroup, or its counterpart; None if torch has none, or sees no device."""
    found = getattr(dist, f"ProcessGroup{BACKEND}", None)
    return found if found is not None and module().is_available() else None


def accelerators_backend_type() -> Any:
    """Return the backend's member of ``ProcessGroup.BackendType``."""
    kinds: Any = ProcessGroup.BackendType
    return getattr(kinds, BACKEND, kinds.CUSTOM)


class Works:
    """A work that combines several of torch's works."""

    def __init__(self, works: Sequence[Any]) -> None:
        self._works = works

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for all of them; raise RuntimeError if the timeout passes first."""
        limit = None if timeout is None else time.monotonic() + timeout.total_seconds()
        for work in self._works:
            if limit is None:
                work.wait()
            else:
                work.wait(timedelta(seconds=max(0.001, limit - time.monotonic())))
        return True

    def is_completed(self) -> bool:
        """Return whether all of them are complete."""
        return all(work.is_completed() for work in self._works)


def coalesce(group: Port, device: torch.device, starts: Sequence[Callable[[], T]]) -> tuple[list[T], Any]:
    """Run ``starts`` together and return their results, and on CUDA the one work of their launch (otherwise None)."""
    if device.type == "cpu":
        return [start() for start in starts], None
    found = list[T]()
    group._start_coalescing()
    try:
        for start in starts:
            found.append(start())
    finally:  # otherwise later calls would be held back too
        work = group._end_coalescing()
    return found, work


def is_over(work: Any, seconds: float) -> bool:
    """Return whether the work is over after at most ``seconds``; raise its error if it failed."""
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError as error:
        if is_of_user(error):
            raise
        if not work.is_completed():
            return False
        work.wait()  # it ended just as the time ran out: this returns immediately, or raises the work's error
    return True


def without_source(error: RuntimeError) -> str:
    """Return gloo's error text without the line of gloo's source and its guess at a cause."""
    text = str(error).partition("\n")[0].partition(". ")[0]
    return text.partition("] ")[2] or text if text.startswith("[") else text
