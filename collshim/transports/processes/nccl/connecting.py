"""Connect the ranks of a group, or the two ranks of a message, through NCCL, with the group's deadline.

``ncclCommInitRank``, in the first call of torch's ProcessGroup, waits for the other ranks in C++ without a deadline,
and no signal handler runs meanwhile. So a thread makes that first call, of one element, and the rank waits for the
thread. A thread whose call never ends is abandoned: NCCL has no way to interrupt it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.distributed import AllreduceOptions

from collshim.accelerator import ACCELERATOR
from collshim.calls.call import in_the_world
from collshim.errors import DeadlineError, PeerError
from collshim.settings import service_thread
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.processes.port import Port, PortWork
from collshim.transports.streams import on_stream
from collshim.transports.waiting import Watched, watch

First = Callable[[Port, torch.Tensor], PortWork]
"""The call of one element in which NCCL connects the ranks."""


class Connecting(Watched):
    """The wait of a group's ranks, which have all arrived, while NCCL connects them."""

    def __init__(self, group: Group, work: GroupWork, ranks: Sequence[int], seconds: float) -> None:
        """Make the wait; ``work`` belongs to the call that needs the connection, and ``seconds`` is for error texts."""
        self._group = group
        self._work = work
        self._others = [rank for rank in ranks if rank != group.rank]
        self._seconds = seconds
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._is_given_up = False

    def hold(self, first: First, number: int, limit: float) -> None:
        """Wait until NCCL has connected the ranks, this rank on GPU ``number``, or until the time ``limit``."""
        port = self._group.connected_gpu_port()
        device = torch.device(ACCELERATOR, number)
        thread = service_thread(self._connect, first, port, device, name="collshim-connecting")
        thread.start()
        try:
            watch(self, self._over.wait, limit)
        finally:
            self._is_given_up = not self._over.is_set()
        if self._error is not None:
            raise self._error

    def _connect(self, first: First, port: Any, device: torch.device) -> None:
        """Make the first call on a new stream, so that no other work waits behind it."""
        try:
            with on_stream(torch.Stream(device)):
                first(port, torch.zeros(1, device=device)).wait()
            if self._is_given_up:  # the group has ended, so nothing else would end this communicator
                port.abort()
        except BaseException as error:
            self._error = error
        finally:
            self._over.set()

    def report(self) -> None:
        """See ``Watched``."""
        self._work.report()

    def clear(self) -> None:
        """See ``Watched``."""
        self._work.clear()

    def check(self) -> None:
        """Raise an error if the group has ended, or if a rank has left."""
        self._work.raise_if_ended()
        if self._group.stalls.any_left([self._group.ranks[rank] for rank in self._others], self._group.key):
            self._is_given_up = True
            raise self._group.end(PeerError, self._text("a rank has left"))

    def expire(self) -> None:
        """See ``Watched``."""
        self._is_given_up = True
        raise self._group.end(DeadlineError, self._text(f"the deadline of {self._seconds:g} s passed"))

    def _text(self, why: str) -> str:
        group = self._group
        where = (f"rank {rank} {group.stalls.whereabouts(group.ranks[rank], group.key)}" for rank in self._others)
        text = f"{self._work.call} on rank {group.rank}: NCCL did not connect the ranks, {why}: {'; '.join(where)}"
        return text + in_the_world(group.ranks)


def reduce_all(port: Port, element: torch.Tensor) -> PortWork:
    """Make the first call of a group."""
    return port.allreduce([element], AllreduceOptions())


def message_to(peer: int, rank: int) -> First:
    """Return the first call of two ranks, in which the lower rank sends."""

    def send_or_receive(port: Port, element: torch.Tensor) -> PortWork:
        return port.send([element], peer, 0) if rank < peer else port.recv([element], peer, 0)

    return send_or_receive
