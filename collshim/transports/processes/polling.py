"""gloo's sends and recvs as works that can be polled, dropped, and waited for in slices.

Left to itself such a work says that it is done only after a wait, gives up the connection when a wait times out, delays
Ctrl-C during a wait, and frees its data when it is dropped. So a thread waits for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any

import torch
from torch import Tensor

from collshim.layout import as_bytes

FLOATS = {torch.float64, torch.float32, torch.float16, torch.bfloat16}
INTEGERS = {torch.int64, torch.int32, torch.int8, torch.uint8}
MOVABLE = FLOATS | INTEGERS | {torch.bool}
"""What every backend has a type for; anything else goes as bytes."""

_IDLE = 5.0
"""Seconds that a thread waits for its next work before it ends: to start one takes as long as to send a little."""

_AT_ONCE = timedelta(milliseconds=1)
_GRACE = 1.0
"""Seconds that a thread gets to learn of a connection that was given up."""


class PolledWork:
    """One send or recv on its way. ``memory`` is what it reads or writes, held until it is over."""

    def __init__(self, work: Any, memory: Tensor) -> None:
        self._wait = _Wait(work, memory)
        self._has_thread = False

    @property
    def nbytes(self) -> int:
        """How many bytes travel."""
        return self._wait.memory.nbytes

    def is_completed(self) -> bool:
        """Whether the data has moved, or cannot any more."""
        return self._started().over.is_set()

    def is_over(self, seconds: float | None) -> bool:
        """Whether the data has moved, after at most ``seconds``; raises RuntimeError where it cannot any more."""
        wait = self._started()
        is_over = wait.over.wait(seconds)
        if wait.failure is not None:
            raise wait.failure
        return is_over

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait, without harm to the connection when the time is over; then raise RuntimeError."""
        if not self.is_over(None if timeout is None else timeout.total_seconds()):
            raise RuntimeError("Operation timed out!")
        return True

    def source(self) -> int:
        """The rank that a recv was served by."""
        return int(self._wait.work._source_rank())

    def __del__(self) -> None:
        if not self._has_thread:
            self._started()

    def _started(self) -> _Wait:
        if not self._has_thread:
            self._has_thread = True
            _start(self._wait)
        return self._wait


class Works:
    """Several of torch's works as one.

    Attributes:
        last: the last of them that tells whether it is over without a thread's help; None where there is none.
    """

    def __init__(self, works: Sequence[Any]) -> None:
        self._works = works
        self.last = next((work for work in reversed(works) if not isinstance(work, PolledWork)), None)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for all of them; RuntimeError where the time is over before."""
        limit = None if timeout is None else time.monotonic() + timeout.total_seconds()
        for work in self._works:
            if limit is None:
                work.wait()
            else:
                work.wait(timedelta(seconds=max(0.001, limit - time.monotonic())))
        return True

    def is_completed(self) -> bool:
        """Whether all of them are."""
        return all(work.is_completed() for work in self._works)


def send(group: Any, tensor: Tensor, peer: int, tag: int) -> Any:
    """torch's work of sending a contiguous tensor's data."""
    message = _message(tensor)
    return _polled(group.send([message], peer, tag), message)


def receive(group: Any, tensor: Tensor, peer: int, tag: int) -> Any:
    """torch's work of receiving exactly as much data as the contiguous ``tensor`` holds."""
    message = _message(tensor)
    return _polled(group.recv([message], peer, tag), message)


def receive_from_any(group: Any, tensor: Tensor, tag: int) -> Any:
    """torch's work of receiving exactly as much data as the contiguous ``tensor`` holds, from whoever sends first."""
    message = _message(tensor)
    return _polled(group.recv_anysource([message], tag), message)


def _message(tensor: Tensor) -> Tensor:
    """What travels; of an empty tensor one element, since gloo receives nothing from nobody in particular."""
    message = tensor.view(-1) if tensor.dtype in MOVABLE else as_bytes(tensor)
    return message if message.numel() else message.new_zeros(1)


def _polled(work: Any, tensor: Tensor) -> Any:
    """gloo's work with the tensor that it reads or writes; NCCL's works need no care."""
    return PolledWork(work, tensor) if tensor.device.type == "cpu" else work


@dataclass(eq=False)
class _Wait:
    """A thread's wait for a work, which holds what the work reads or writes: whether it is over, and its failure."""

    work: Any
    memory: Tensor
    over: threading.Event = field(default_factory=threading.Event)
    failure: RuntimeError | None = None


_idle: list[SimpleQueue[_Wait]] = []
"""Of each thread that has nothing to wait for, where it takes its next work from."""

_running: list[_Wait] = []
"""What threads wait for now."""


def give_up() -> None:
    """The process ends: a thread that came back from gloo while the interpreter goes down would abort it."""
    for wait in list(_running):
        with suppress(RuntimeError):
            wait.work.wait(_AT_ONCE)  # it expires, gloo gives up the connection, and the thread learns of that
        wait.over.wait(_GRACE)


def _forget() -> None:
    _idle.clear()
    _running.clear()


os.register_at_fork(after_in_child=_forget)


def _start(wait: _Wait) -> None:
    try:
        queue = _idle.pop()
    except IndexError:
        queue = SimpleQueue()
        threading.Thread(target=_serve, args=(queue,), name="collshim-polling", daemon=True).start()
    queue.put(wait)


def _serve(queue: SimpleQueue[_Wait]) -> None:
    """Wait for one work after the other, until none has come for a while."""
    while True:
        try:
            _await(queue.get(timeout=_IDLE))
        except Empty:
            try:
                _idle.remove(queue)
            except ValueError:  # another thread has taken it meanwhile, and puts a work there
                continue
            return
        _idle.append(queue)


def _await(wait: _Wait) -> None:
    _running.append(wait)
    try:
        wait.work.wait()
    except RuntimeError as error:
        wait.failure = error  # where it is not waited for any more, the group's next call raises it
    _running.remove(wait)
    wait.over.set()
