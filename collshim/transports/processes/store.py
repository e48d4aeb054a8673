"""The store of a world of processes, and the ProcessGroups made over it."""

from __future__ import annotations

import ctypes
import os
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistNetworkError, PrefixStore, ProcessGroup, ProcessGroupGloo, TCPStore

from collshim.calls.site import caller
from collshim.errors import CollshimError, CommunicationError, DeadlineError, PeerError, WorldError
from collshim.transports.processes.addresses import LOOPBACK, is_loopback, listening_host
from collshim.transports.processes.connections import Connections
from collshim.transports.processes.stalls import StallInspector, comes_by
from collshim.transports.waiting import FIRST_SLICE, Watched, watch

_LONGEST = 1e7
"""Seconds: what a store and gloo take for a deadline has an end, also where ours has none."""

LEAVE_SECONDS = 10.0
"""Seconds that the process which serves the store waits for the others when it leaves."""

_PAUSE = 0.01
"""Seconds between two questions whether all ranks have come: many ask at a time."""

_PATIENCE = 10
"""gloo's own deadline in multiples of ours: our waits name the missing ranks, gloo's would only end the group."""
_TIMEOUT_STAYS = not hasattr(ProcessGroup, "all_gather_single")  # torch 2.6: a call's is what gloo was made with


class ProcessWorld:
    """What all groups of one process share: the world's store, gloo's device, and the inspector of stalls.

    Args:
        store: a torch store that all processes of the world reach.
        rank: this process's rank in the world.
        timeout: seconds that a group's ranks wait for each other when it is made.
        address: the world's master; a loopback address keeps gloo off the other interfaces.
        name: apart from the worlds that this store served before.
        serves: whether this process serves the store, which must outlive the others' need of it.
        secret: what all processes of the world know, and no other.

    Attributes:
        connections: those that messages travel on.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        timeout: float,
        address: str = "127.0.0.1",
        *,
        serves: bool = False,
        name: str = "world",
        secret: bytes = b"",
    ) -> None:
        self.store: Any = PrefixStore(f"collshim/{name}", store)
        self.rank = rank
        self.timeout = min(timeout, _LONGEST)
        self.stalls = StallInspector(self.store, rank)
        self._address = address
        self._serves = serves
        self._device: Any = None
        self._interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
        host = listening_host(address, self._interface)
        self.connections = Connections(rank, host, secret)
        self.store.set(f"address/{rank}", f"{host} {self.connections.port}")
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()
        self.ending: list[list[ProcessGroup]] = []  # which threads let go of

    def meet(self, size: int) -> None:
        """Learn where the others listen, who have all come."""
        texts = [self.store.get(f"address/{rank}").decode().split() for rank in range(size)]
        self.connections.open([(host, int(port)) for host, port in texts])

    def register(self, transport: Any) -> None:
        """``transport`` is closed with the world, where it was not before."""
        self._open.add(transport)

    def close(self) -> None:
        """End all groups and let go of the store, which frees its port where this process serves it."""
        in_order = sorted(self._open, key=lambda transport: str(transport.key), reverse=True)
        for transport in in_order:  # the same on all ranks, since the end of a NCCL group waits for them
            transport.close()
        self.connections.close()
        self.store = None
        self.stalls.close()

    def abandon(self) -> None:
        """The process ends without ``close``: gloo's destructors would wait for calls that no other rank makes."""
        for transport in self._open:
            transport.abandon()
        for groups in self.ending:
            never_free(groups)
        self.connections.close()

    def group(self, key: str, ranks: Sequence[int], *, cuda: bool) -> ProcessGroup:
        """A ProcessGroup over gloo for CPU tensors and, where asked and there, NCCL for CUDA tensors."""
        store, rank, size = PrefixStore(key, self.store), list(ranks).index(self.rank), len(ranks)
        group = ProcessGroup(store, rank, size)
        self.stalls.post_making(ranks, caller().site())
        try:
            self._assemble(store, ranks)
            gloo = self._gloo(store, rank, size)
        except RuntimeError as error:
            self.stalls.give_up()
            raise error if isinstance(error, CollshimError) else self._broken(ranks, error) from error
        finally:
            self.stalls.clear()
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
        group._set_default_backend(ProcessGroup.BackendType.GLOO)
        if cuda and nccl_is_there():
            nccl = _nccl(PrefixStore("nccl", store), rank, size, self.timeout)
            group._register_backend(torch.device("cuda"), ProcessGroup.BackendType.NCCL, nccl)
        return group

    def _assemble(self, store: Any, ranks: Sequence[int]) -> None:
        """Wait until all ranks have come to make the group: gloo's own wait ignores Ctrl-C and ranks that left."""
        assembly = _Assembly(self, store, ranks)
        store.set(assembly.keys[self.rank], "")
        try:
            watch(assembly, assembly.is_complete, time.monotonic() + self.timeout, later=FIRST_SLICE)
        except BaseException:
            with suppress(DistNetworkError):
                store.delete_key(assembly.keys[self.rank])  # ranks that come later must not count this one
            raise

    def _broken(self, ranks: Sequence[int], error: RuntimeError) -> CommunicationError:
        """Why a group could not be made of ranks that all came."""
        if isinstance(error, DistNetworkError):
            return PeerError(f"{_making(ranks)}: the process that served the world's store has ended")
        return PeerError(f"{_making(ranks)}: the connection to one of them broke")

    def agreed(self, key: str, own: str) -> str:
        """Rank 0's word on what all ranks must have alike; this rank's own where rank 0 does not come."""
        if self.rank == 0:
            self.store.set(f"agreed/{key}", own)
            return own
        try:
            word: bytes = self.store.get(f"agreed/{key}")
        except RuntimeError:
            return own  # the making of the first group names the missing ranks
        return word.decode()

    def wait_until_left(self, size: int) -> None:
        """Where this process serves the store, give the others time to leave: small messages lie in it."""
        limit = time.monotonic() + LEAVE_SECONDS
        others = [rank for rank in range(size) if rank != self.rank]
        while self._serves and others and time.monotonic() < limit:
            others = [rank for rank in others if not self.stalls.any_left([rank])]
            time.sleep(0.005)

    def _gloo(self, store: Any, rank: int, size: int) -> Any:
        options: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # not in torch's stubs
        options._devices = [self._gloo_device()]
        options._timeout = timedelta(seconds=self.timeout * (_PATIENCE if _TIMEOUT_STAYS else 1))
        gloo = ProcessGroupGloo(store, rank, size, options)
        gloo._set_default_timeout(timedelta(seconds=_PATIENCE * self.timeout))
        return gloo

    def _gloo_device(self) -> Any:
        if self._device is None:
            if self._interface:
                self._device = ProcessGroupGloo.create_device(interface=self._interface)
            elif is_loopback(self._address):
                self._device = ProcessGroupGloo.create_device(hostname=LOOPBACK)
            else:
                self._device = ProcessGroupGloo.create_default_device()
        return self._device


class _Assembly(Watched):
    """The ranks of a group that is being made, as what one of them waits for."""

    def __init__(self, world: ProcessWorld, store: Any, ranks: Sequence[int]) -> None:
        self.keys = {rank: f"came/{rank}" for rank in ranks}
        self._world = world
        self._store = store
        self._ranks = ranks

    def is_complete(self, seconds: float) -> bool:
        """Whether all have come, after at most that many seconds."""
        keys = [*self.keys.values()]
        return comes_by(lambda: self._store.check(keys), time.monotonic() + seconds, _PAUSE)

    def look(self) -> None:
        """Raise where a rank that has not come has left."""
        absent = self._absent()
        if self._world.stalls.any_left(absent):
            raise PeerError(self._text(absent, ""))

    def expire(self) -> None:
        """Raise where a rank has not come."""
        self.look()
        absent = self._absent()
        if absent:
            raise DeadlineError(self._text(absent, f" within {self._world.timeout:g} s"))

    def _absent(self) -> list[int]:
        return [rank for rank in self._ranks if not self._store.check([self.keys[rank]])]

    def _text(self, absent: Sequence[int], within: str) -> str:
        """Who has not come, and where they are."""
        details = "; ".join(f"rank {rank} {self._world.stalls.whereabouts(rank)}" for rank in absent)
        return f"{_making(self._ranks)}: {len(absent)} of {len(self._ranks)} ranks did not come{within}: {details}"


def _making(ranks: Sequence[int]) -> str:
    return f"making a group of the world's ranks {list(ranks)} at {caller().site()}"


def serve_store(host: str) -> TCPStore:
    """A store served by this process at a free port of ``host``."""
    return TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))


def reach_store(host: str, port: int, *, serves: bool = False, timeout: float = 60.0) -> TCPStore:
    """The store at this address; served here where ``serves``, even beside another user of the port in this process."""
    seconds = timedelta(seconds=min(timeout, _LONGEST))
    try:
        return TCPStore(host, port, is_master=serves, timeout=seconds, wait_for_workers=False, multi_tenant=True)
    except DistNetworkError as error:
        what = "cannot be served" if serves else "is not to be reached"
        raise WorldError(f"the world's store at {host}:{port} {what} (within {timeout:g} s): {error}") from error


def nccl_is_there() -> bool:
    """Whether torch has NCCL and sees a GPU."""
    return torch.distributed.is_nccl_available() and torch.cuda.is_available()


def _nccl(store: Any, rank: int, size: int, timeout: float) -> Any:
    from torch.distributed import ProcessGroupNCCL

    options = ProcessGroupNCCL.Options()
    options._timeout = timedelta(seconds=timeout)  # then torch's watchdog ends the process: no thread waits on the host
    return ProcessGroupNCCL(store, rank, size, options)


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
    nccl: Any = group._get_backend(torch.device("cuda"))
    nccl.abort() if failed else nccl.shutdown()
