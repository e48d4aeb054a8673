"""Events for torch's profilers: ``gloo:all_reduce``, with the shapes of the call's arguments.

Titles and shapes are those of torch 2.13.0 over gloo. A title has the backend's name and then the call's, unless
``torch.distributed.record_comm`` sets a title. Complex tensors are shown as pairs of real ones. An event ends when the
call is complete.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch.autograd import profiler

from collshim.arrays import as_torch

T = TypeVar("T")
_C: Any = torch._C


class Event:
    """A profiler's event for a call."""

    def __init__(self, backend: str, title: str, tensors: list[torch.Tensor]) -> None:
        event = _C._profiler._RecordFunctionFast(_title(backend, title, tensors), tensors)
        event.__enter__()
        self._held = [event]  # the only reference: an event must be freed on the thread that ended it, or it ends twice

    def around(self, step: Callable[[], T]) -> T:
        """Run a step of the call, without separate events for calls that the engine makes in it, such as gloo's."""
        _C._autograd._enable_record_function(False)
        try:
            return step()
        finally:
            _C._autograd._enable_record_function(True)

    def end(self) -> None:
        """End the event on a different thread, by which profilers recognise an asynchronous event."""
        if self._held:
            taken, dropped = threading.Event(), threading.Event()
            thread = threading.Thread(target=self._leave, args=(taken, dropped), name="collshim-profiling")
            thread.start()
            taken.wait()
            self._held.clear()
            dropped.set()
            thread.join()

    def _leave(self, taken: threading.Event, dropped: threading.Event) -> None:
        """End the event after the calling thread has dropped it: a free-threaded Python frees it there otherwise."""
        event = self._held[0]
        taken.set()
        dropped.wait()
        event.__exit__(None, None, None)


def begin_event(backend: str, title: str, arrays: Sequence[Any]) -> Event | None:
    """Begin an event, and return it; None if no profiler runs."""
    if not profiler._is_profiler_enabled:
        return None
    return Event(backend, title, [_as_gloo_sees(array) for array in arrays])


def _title(backend: str, title: str, tensors: Sequence[torch.Tensor]) -> str:
    override = getattr(_C._distributed_c10d, "_get_comm_profiling_name", str)()  # from torch 2.13 on
    if override:
        return str(override)
    if ":" in backend or backend == "undefined":
        backend = "nccl" if any(tensor.is_cuda for tensor in tensors) else "gloo"
    return f"{backend}:{title}"


def _as_gloo_sees(array: Any) -> torch.Tensor:
    tensor = as_torch(array).detach()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
