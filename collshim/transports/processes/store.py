"""The store of a world of processes, and the ProcessGroups made over it."""

from __future__ import annotations

import hmac
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch.distributed import DistNetworkError, PrefixStore, ProcessGroup, ProcessGroupGloo, TCPStore

from collshim.accelerator import ACCELERATOR
from collshim.calls.pending import PendingCalls
from collshim.calls.site import caller
from collshim.errors import CollshimError, DeadlineError, PeerError
from collshim.transports.matching import never_closed, warn_of
from collshim.transports.processes.addresses import listening_host
from collshim.transports.processes.backend import accelerators_backend_type
from collshim.transports.processes.client import StoreClient, StoreSilentError
from collshim.transports.processes.connections import Connections
from collshim.transports.processes.descriptors import raise_descriptor_limit, require_descriptors
from collshim.transports.processes.dropping import DROPPED, never_free
from collshim.transports.processes.enrolment import Enrolment
from collshim.transports.processes.gloo_device import CONNECTS_LATER, GlooDevice
from collshim.transports.processes.gpu_group import made_nccl, nccl_is_there
from collshim.transports.processes.making import MARKS, PAUSE, Assembly, Mesh, making
from collshim.transports.processes.serving import LONGEST, reach_store
from collshim.transports.processes.stalls import StallInspector
from collshim.transports.processes.untold import Untold

_OF_GLOO = "0"
"""What gloo's own keys in the store of a group begin with, as torch 2.13 has it."""

_SHORTEST = 0.1
"""Seconds that a step of the making gets in any case: the store may well answer."""


_WITHDRAWAL_SECONDS = 1.5
"""Seconds that it waits for them if no world could be made."""

_REFUSAL_SECONDS = 10.0
"""Seconds that it waits if the ranks disagree, which all of them are to read from the store."""

LEAVE_SECONDS = 10.0
"""Seconds that the process which serves the store waits for the others when it leaves."""

_PATIENCE = 10
"""gloo's own deadline in multiples of ours: our waits name the missing ranks, gloo's would only end the group."""
_TRIES = 5
"""How often gloo tries to connect, each time as long as its deadline."""
_TIMEOUT_STAYS = not hasattr(ProcessGroup, "all_gather_single")  # torch 2.6: a call's is what gloo was made with


class ProcessWorld:
    """What all groups of one process share: the world's store, gloo's device, connections, and the inspector of stalls.

    Args:
        store: a torch store that all processes of the world reach.
        rank: this process's rank in the world.
        timeout: seconds that a group's ranks wait for each other when it is made.
        address: the world's master; a loopback address keeps gloo off the other interfaces.
        name: apart from the worlds that this store served before.
        server: who serves the store; "" for this process, which then must outlive the others' need of it.
        secret: what all processes of the world know, and no other.

    Attributes:
        client: asks the store.
        connections: those that messages travel on.
        pending: this rank's calls that were not waited for.
        untold: failures that ended groups on GPUs, and that the program was not told of.
        store: for torch itself, which asks it where gloo's processes are.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        timeout: float,
        address: str = "127.0.0.1",
        *,
        server: str = "another process",
        name: str = "world",
        secret: bytes = b"",
    ) -> None:
        prefix = f"collshim/{name}/{hmac.digest(secret, name.encode(), 'sha256').hex()}"
        self.store: Any = PrefixStore(prefix, store)
        self._given, self._prefix, self._making = store, prefix, threading.Lock()
        self.rank = rank
        self.secret = secret
        self.timeout = min(timeout, LONGEST)
        self.begin_making()
        raise_descriptor_limit()
        self._serves = not server
        self.client = StoreClient(store, prefix, server or f"rank {rank}", secret)
        self.stalls = StallInspector(self.client, rank)
        self.pending = PendingCalls()
        self.untold = Untold()
        self._address = address
        self._device: GlooDevice | None = None
        self._interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
        host = listening_host(address, self._interface)
        self.connections = Connections(rank, host, secret)
        self.stalls.places = self.connections.talk.activities
        self.connections.talk.end_world = lambda why: DROPPED.drop(partial(self._end, why))
        self._host, self._is_announced = host, False
        self.enrolment: Enrolment | None = None
        self._open: weakref.WeakSet[Any] = weakref.WeakSet()
        self._opening = threading.RLock()  # threads of the rank make groups while others look through them
        self.ending: list[list[ProcessGroup]] = []  # which threads let go of
        self.ending_nccl: dict[threading.Thread, ProcessGroup] = {}  # by the thread that ends it

    def enrol(self, size: int) -> None:
        """Join the other ranks of the world; see ``Enrolment.join``."""
        has_left = self.stalls.has_left
        self.enrolment = Enrolment(self.client, self.rank, size, self.connections, self._host, has_left)
        with self._told([self.rank]):
            self.enrolment.join(self._left())

    def _end(self, why: str) -> None:
        """A rank has objected to the world: end all groups."""
        for transport in self._transports():
            transport.break_(PeerError(why))

    def refuse(self) -> None:
        """Raise if the ranks disagree on what they were told."""
        if self.enrolment is not None:
            self.enrolment.refuse()

    def withdraw(self, why: str) -> None:
        """The world could not be made: tell ranks that wait for this one, and let them read why from the store."""
        if self.enrolment is None or self.enrolment.is_member:
            self.leave(why)
        if self.enrolment is not None and self._serves:
            with suppress(StoreSilentError, DistNetworkError):
                seconds = _REFUSAL_SECONDS if self.enrolment.is_refused else _WITHDRAWAL_SECONDS
                self._await_leaving(self.enrolment.others(), seconds)
        self.close()

    def begin_making(self) -> None:
        """A group is made from now on, or the world: in ``timeout`` seconds for all of its steps together."""
        self._made_by = time.monotonic() + self.timeout

    def _left(self) -> float:
        """Seconds that are left of them."""
        return max(_SHORTEST, self._made_by - time.monotonic())

    def meet(self, size: int) -> None:
        """Learn where the others listen, who have all come."""
        with self._told(range(size)):
            texts = self.client.get([f"address/{rank}" for rank in range(size)], self._left())
        places = [text.split() for text in texts]
        self.connections.open({rank: (host, int(port)) for rank, (host, port) in enumerate(places)})

    def register(self, transport: Any) -> None:
        """``transport`` is closed with the world, where it was not before."""
        with self._opening:
            self._open.add(transport)

    def _transports(self) -> list[Any]:
        """The ends of groups that are open."""
        with self._opening:
            return list(self._open)

    def close(self) -> None:
        """End all groups and let go of the store, which frees its port where this process serves it."""
        in_order = sorted(self._transports(), key=lambda transport: str(transport.key), reverse=True)
        self.store = self._given = None
        with ExitStack() as others:  # where a warning is an error, the rest is closed all the same
            others.callback(self.untold.raise_any)
            others.callback(self.client.close)
            others.callback(self.connections.close)
            others.callback(self._await_nccl)
            for transport in reversed(in_order):  # the same on all ranks: the end of a NCCL group waits for them
                others.callback(transport.close)
            warn_of(self._never_closed(), "the world")

    def _await_nccl(self) -> None:
        """NCCL's ends are over, which may wait for the other ranks.

        What has not ended at the deadline is left to its thread: torch would wait for that before it aborts, and then
        abort what is no more.
        """
        limit = time.monotonic() + self.timeout
        for thread in list(self.ending_nccl):
            thread.join(max(0.0, limit - time.monotonic()))
        late = list(self.ending_nccl.values())
        never_free(late)
        if late:
            text = f"closing the world: NCCL did not end {len(late)} of its groups within {self.timeout:g} s"
            raise DeadlineError(f"{text}, which other ranks have not closed perhaps")

    def settle(self, *, waits: bool = True) -> None:
        """Wait until the GPU is done with this process's calls; raise a failure that the program was not told of."""
        for transport in self._transports() if waits else ():
            transport.await_gpu()
        self.untold.raise_any()

    def abandon(self) -> None:
        """The process ends without ``close``: gloo's destructors would wait for calls that no other rank makes."""
        for transport in self._transports():
            transport.abandon()
        for groups in self.ending:
            never_free(groups)
        self.connections.close()
        self.client.close()

    def warn_of_leaks(self) -> None:
        """Warn of what is left of groups that were not closed."""
        for transport in self._transports():
            warn_of(transport.leaks(), f"group {transport.key}")
        warn_of(self._never_closed(), "the world")

    def _never_closed(self) -> list[str]:
        for transport in self._transports():
            transport.launches.let_go_of_works()
        return never_closed(transport for transport in self._transports() if transport.is_usable())

    def group(self, key: str, ranks: Sequence[int], *, cuda: bool) -> ProcessGroup:
        """A ProcessGroup over gloo for CPU tensors and, where asked and there, NCCL for CUDA tensors."""
        require_descriptors(len(ranks))
        with self._store_to_make_by() as whole:
            return self._made(PrefixStore(key, whole), key, ranks, cuda)

    @contextmanager
    def _store_to_make_by(self) -> Iterator[Any]:
        """The store that gloo makes a group by; of threads that make groups at once each has a connection of its own.

        gloo waits in the store for the other ranks, and lets no other question through meanwhile: two threads would
        wait for each other if another rank's threads came in another order.
        """
        if not self._making.acquire(blocking=False):
            yield self._another_connection()
            return
        try:
            yield self.store
        finally:
            self._making.release()

    def _another_connection(self) -> Any:
        if hasattr(self.store, "clone"):
            return self.store.clone()
        given = self._given
        return PrefixStore(self._prefix, reach_store(given.host, given.port)) if type(given) is TCPStore else self.store

    def _made(self, store: Any, key: str, ranks: Sequence[int], cuda: bool) -> ProcessGroup:
        """See ``group``."""
        rank, size = list(ranks).index(self.rank), len(ranks)
        if not self._is_announced:  # behind the claim of this rank, which another process may have
            self.client.post(f"address/{self.rank}", f"{self._host} {self.connections.port}")
            self._is_announced = True
        group = ProcessGroup(store, rank, size)
        limit = self._made_by
        self.stalls.post_making(ranks, caller().site())
        try:
            with self._told(ranks):
                parts = self.client, self.stalls, self.rank, ranks, key, self.refuse
                Assembly(*parts).wait(limit, self.timeout)
                device, seconds = self._gloo_device(), self._left()
                mesh = Mesh(*parts)
                gloo = mesh.made(lambda: self._gloo(store, rank, size, device, seconds), limit, self.timeout)
        except CollshimError:
            self.stalls.give_up()
            raise
        finally:
            self.stalls.clear()
        group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
        group._set_default_backend(ProcessGroup.BackendType.GLOO)
        if cuda and nccl_is_there():
            nccl = made_nccl(PrefixStore("nccl", store), key, ranks, rank, self.timeout)
            group._register_backend(torch.device(ACCELERATOR), accelerators_backend_type(), nccl)
            named: Any = group  # its stubs have a type for names that older releases lack
            named._set_group_name(key)
            group._set_group_desc("collshim")
        return group

    @contextmanager
    def _told(self, ranks: Sequence[int]) -> Iterator[None]:
        """What the store does not answer, as an error of the group that is being made."""
        try:
            yield
        except StoreSilentError as error:
            why = f"{self.client.server}, which serves the world's store, has not answered in time"
            raise DeadlineError(f"{making(ranks)}: {why}") from error
        except DistNetworkError as error:
            why = f"{self.client.server}, which served the world's store, has ended"
            raise PeerError(f"{making(ranks)}: {why}") from error

    def fresh(self, key: str) -> str:
        """The name of a group under this key for which its ranks have not met yet, perhaps without this one."""
        with self._told([self.rank]):
            while self.client.check(f"{key}/data/met", seconds=self._left()):
                key += "+"
        return key

    def made(self, key: str, ranks: Sequence[int]) -> None:
        """This rank has made the group; the last one clears the store of what the ranks met by."""

        def tell(store: Any) -> None:
            if store.add(f"{key}/made", 1) == len(ranks):
                for half in ("data", "fingerprints"):
                    of_gloo = [] if CONNECTS_LATER else [f"{_OF_GLOO}/{rank}" for rank in range(len(ranks))]
                    for name in (*of_gloo, *(f"{mark}/{rank}" for mark in MARKS for rank in ranks)):
                        store.delete_key(f"{key}/{half}/{name}")

        with self._told([self.rank]):
            self.client.ask(tell, self._left())

    def leave(self, why: str, *, stays: bool = False) -> None:
        """Tell the other ranks that this one makes no further call in any group, and how far it has come in each.

        Calls that it has posted still complete while its process ``stays``; else only those that are complete count.
        """
        transports = self._transports()
        for transport in transports:
            transport.launches.tell()
        counts = {each.key: each.sequence if stays else each.completed() for each in transports}
        self.stalls.leave(why, counts)

    def left(self, key: str, size: int, more: Sequence[str] = ()) -> None:
        """This rank has closed its end of the group; the last one clears the store of it, and of ``more`` keys."""

        def tell(store: Any) -> None:
            if store.add(f"{key}/left", 1) == size:
                own = (f"{key}/{what}" for what in ("made", "left", "data/met", "fingerprints/met"))
                for name in (*own, *more):
                    store.delete_key(name)

        self.client.tell(tell)

    def is_made(self, key: str, size: int) -> bool:
        """Whether every rank has made the group, or the store is gone."""
        try:
            return self.client.ask(lambda store: int(store.add(f"{key}/made", 0))) >= size
        except StoreSilentError:
            return False
        except DistNetworkError:
            return True

    def agreed(self, key: str, own: str) -> str:
        """Rank 0's word on what all ranks must have alike; this rank's own if rank 0 does not come.

        Raises:
            WorldError: the ranks disagree on what they were told.
        """
        limit = self._made_by
        try:
            if self.rank == 0:
                self.client.set(f"agreed/{key}", own, self._left())
                return own
            while not (word := self.client.get([f"agreed/{key}"], self._left())[0]) and time.monotonic() < limit:
                self.refuse()
                time.sleep(PAUSE)
        except (StoreSilentError, DistNetworkError):
            return own  # the making of the first group says so
        return word or own

    def wait_until_left(self, size: int) -> None:
        """Where this process serves the store, give the others time to leave."""
        if self._serves:
            self._await_leaving(range(size), LEAVE_SECONDS)

    def _await_leaving(self, ranks: Sequence[int], seconds: float) -> None:
        limit, others = time.monotonic() + seconds, [rank for rank in ranks if rank != self.rank]
        while others and time.monotonic() < limit:
            others = [rank for rank in others if not self.stalls.any_left([rank])]
            time.sleep(0.005)

    def _gloo(self, store: Any, rank: int, size: int, device: GlooDevice, seconds: float) -> Any:
        options: Any = ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # not in torch's stubs
        patience = _PATIENCE * self.timeout if _TIMEOUT_STAYS else seconds / _TRIES
        options._timeout = timedelta(seconds=patience)
        with device.listening() as options._devices:
            gloo = ProcessGroupGloo(store, rank, size, options)
        gloo._set_default_timeout(timedelta(seconds=_PATIENCE * self.timeout))
        return gloo

    def _gloo_device(self) -> GlooDevice:
        with self._opening:
            if self._device is None:
                self._device = GlooDevice(self._interface, self._address)
            return self._device
