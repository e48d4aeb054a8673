"""A world of processes, as one of them sees it: the store, the connections, and the groups that are open."""

from __future__ import annotations

import hmac
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Protocol, cast

from torch.distributed import DistNetworkError, PrefixStore, Store, TCPStore

from collshim.calls.pending import PendingCalls
from collshim.errors import CollshimError, DeadlineError, PeerError
from collshim.transports.dropping import DROPPED
from collshim.transports.matching import never_closed, warn_of
from collshim.transports.rendezvous.client import StoreClient, StoreSilentError
from collshim.transports.rendezvous.enrolment import Enrolment
from collshim.transports.rendezvous.making import PAUSE, is_under_way, making
from collshim.transports.rendezvous.serving import KEPT_STORES, LONGEST, reach_store
from collshim.transports.rendezvous.stalls import StallInspector
from collshim.transports.rendezvous.untold import Untold
from collshim.transports.sockets.addresses import listening_host
from collshim.transports.sockets.connections import Connections
from collshim.transports.sockets.descriptors import raise_descriptor_limit

_SHORTEST = 0.1
"""The least number of seconds for each step of making a group: the store can answer even after the deadline."""

_WITHDRAWAL_SECONDS = 1.5
"""For how many seconds a process still serves the store to the others if the world could not be made."""

_REFUSAL_SECONDS = 10.0
"""The same if the ranks disagree: all of them read the reason from the store."""

LEAVE_SECONDS = 10.0
"""For how many seconds the process that serves the store waits for the others when it leaves."""


class _Launches(Protocol):
    """A group's calls on GPUs, as its world sees them."""

    def tell(self) -> None:
        """Write to the store how many calls this rank has made."""

    def let_go_of_works(self) -> None:
        """Drop the works of complete calls."""


class _OpenGroup(Protocol):
    """A process's end of a group, as its world sees it."""

    @property
    def key(self) -> str:
        """The group's name in the store."""
        ...

    @property
    def sequence(self) -> int:
        """The number of collectives posted so far."""
        ...

    @property
    def launches(self) -> _Launches:
        """The group's calls on GPUs."""
        ...

    def close(self) -> None:
        """End the group on this rank."""

    def abandon(self) -> None:
        """Keep what cannot be freed: the process ends without ``close``."""

    def break_(self, failure: CollshimError) -> None:
        """End the group: its calls fail with ``failure``."""

    def await_gpu(self) -> None:
        """Wait until the GPU has finished the group's calls."""

    def leaks(self) -> list[str]:
        """Describe the calls that were not waited for."""
        ...

    def is_usable(self) -> bool:
        """Return whether the group has neither failed nor been closed."""
        ...

    def completed(self) -> int:
        """Count the calls that are complete."""
        ...


class ProcessWorld:
    """The state that all groups of a process share: the world's store, its connections, and the inspector of stalls.

    Args:
        store: a torch store that all processes of the world can reach.
        rank: this process's rank in the world.
        timeout: how many seconds a group's ranks wait for each other when the group is made.
        address: the world's master; a loopback address keeps gloo off the other interfaces.
        name: the world's name, which differs from the names of worlds that the store served before.
        server: the process that serves the store; "" for this process, which must live as long as the others need the
            store.
        secret: a secret that only the processes of the world know.

    Attributes:
        client: the queries to the store.
        connections: the connections that carry messages.
        enrolment: how this process joined; None before ``enrol``.
        interface: the network interface from GLOO_SOCKET_IFNAME, or "".
        making_deadline: when the group that is being made must be ready, in seconds of ``time.monotonic``.
        pending: this rank's calls that have not been waited for.
        stalls: the inspector that finds the ranks that are missing from a call.
        store: the store that is passed to torch, which looks up the addresses of gloo's processes in it.
        untold: the failures that ended groups on GPUs and have not been reported to the program.
    """

    def __init__(
        self,
        store: Store,
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
        self._unprefixed: Store | None = store
        self._prefix = prefix
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
        self.address = address
        self.interface = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
        self._host = listening_host(address, self.interface)
        self._is_announced = self._ends = False
        self.connections = Connections(rank, self._host, secret)
        self.stalls.places = self.connections.talk.activities
        self.stalls.has_ended = self.connections.talk.has_ended
        self.connections.talk.end_world = lambda why: DROPPED.drop(partial(self._end, why))
        self.enrolment: Enrolment | None = None
        self._open: weakref.WeakSet[_OpenGroup] = weakref.WeakSet()
        self._opening = threading.RLock()  # some threads of the rank make groups while others read the list
        self._at_close: list[Callable[[], None]] = []
        self._at_abandon: list[Callable[[], None]] = []

    def at_close(self, close: Callable[[], None], *, abandon: Callable[[], None]) -> None:
        """Call ``close`` after the groups' when the world is closed, or ``abandon`` if the process just ends."""
        self._at_close.append(close)
        self._at_abandon.append(abandon)

    def enrol(self, size: int) -> str:
        """Join the other ranks of the world; see ``Enrolment.join``."""
        has_left = self.stalls.has_left
        self.enrolment = Enrolment(self.client, self.rank, size, self.connections, self._host, has_left)
        with self.blame_server([self.rank]):
            return self.enrolment.join(self.seconds_left())

    def _end(self, why: str) -> None:
        """End all groups: a rank has objected to the world."""
        for group in self._groups():
            group.break_(PeerError(why))

    def refuse(self) -> None:
        """Raise an error if the ranks disagree on the size of the world or on the releases that they run."""
        if self.enrolment is not None:
            self.enrolment.refuse()

    def withdraw(self, why: str) -> None:
        """Report to the ranks that wait for this one that the world could not be made, and close it.

        A process that serves the store still serves it for a while, so that the other ranks can read the reason.
        """
        if self.enrolment is None or self.enrolment.is_member:
            self.leave(why)
        if self.enrolment is not None and self._serves:
            with suppress(StoreSilentError, DistNetworkError):
                self._let_read(self.enrolment)
        self.close()

    def _let_read(self, enrolment: Enrolment) -> None:
        others = enrolment.others()
        if enrolment.is_refused:
            self._await_leaving(others, _REFUSAL_SECONDS)
            return
        store = cast(Store, self._unprefixed)  # a rank that died or was stopped never reads it, which delays no error
        client = StoreClient(store, self._prefix, f"rank {self.rank}", self.secret)
        stalls = StallInspector(client, self.rank)

        def have_left() -> bool:
            return all(stalls.any_left([rank]) for rank in others)

        KEPT_STORES.keep(store, have_left, client.close, _WITHDRAWAL_SECONDS)

    def begin_making(self) -> None:
        """Start the clock of the next group, or of the world: all steps of making it take ``timeout`` in total."""
        self.making_deadline = time.monotonic() + self.timeout

    def seconds_left(self) -> float:
        """Return the seconds that are left to make the group."""
        return max(_SHORTEST, self.making_deadline - time.monotonic())

    def announce(self) -> None:
        """Write to the store where this process listens, once.

        This must not happen before the rank is claimed, because a different process might have claimed the same rank.
        """
        if not self._is_announced:
            self.client.post(f"address/{self.rank}", f"{self._host} {self.connections.port}")
            self._is_announced = True

    def meet(self, size: int) -> None:
        """Read from the store where the other ranks listen; all of them have joined."""
        with self.blame_server(range(size)):
            texts = self.client.get([f"address/{rank}" for rank in range(size)], self.seconds_left())
        places = [text.split() for text in texts]
        self.connections.open({rank: (host, int(port)) for rank, (host, port) in enumerate(places)})

    def another_store(self) -> Store:
        """Return the store with a separate connection."""
        own: Any = self.store
        if hasattr(own, "clone"):
            return cast(Store, own.clone())
        store = self._unprefixed
        if type(store) is not TCPStore:
            return cast(Store, own)
        return PrefixStore(self._prefix, reach_store(store.host, store.port))

    def register(self, group: _OpenGroup) -> None:
        """Close ``group`` with the world, unless it was closed before."""
        with self._opening:
            self._open.add(group)

    def _groups(self) -> list[_OpenGroup]:
        with self._opening:
            return list(self._open)

    def close(self) -> None:
        """End all groups and release the store, which frees its port if this process serves it."""
        in_order = sorted(self._groups(), key=lambda group: str(group.key), reverse=True)
        self.store = self._unprefixed = None
        with ExitStack() as others:  # if a warning is an error, the rest is still closed
            others.callback(self.untold.raise_any)
            others.callback(self.client.close)
            others.callback(self.connections.close)
            for close in self._at_close:
                others.callback(close)
            for group in reversed(in_order):  # in one order on all ranks: NCCL waits for them
                others.callback(group.close)
            warn_of(self._never_closed(), "the world")

    def settle(self, *, waits: bool = True) -> None:
        """Wait until the GPU has finished this process's calls; raise a failure that has not been reported yet."""
        for group in self._groups() if waits else ():
            group.await_gpu()
        self.untold.raise_any()

    def abandon(self) -> None:
        """End the process without ``close``: gloo's destructors would wait for calls that no other rank makes."""
        for group in self._groups():
            group.abandon()
        for abandon in self._at_abandon:
            abandon()
        self.connections.close()
        self.client.close()
        if is_under_way():
            self.client.cut()

    def warn_of_leaks(self) -> None:
        """Warn of calls that were not waited for, in groups that were not closed."""
        for group in self._groups():
            warn_of(group.leaks(), f"group {group.key}")
        warn_of(self._never_closed(), "the world")

    def _never_closed(self) -> list[str]:
        for group in self._groups():
            group.launches.let_go_of_works()
        return never_closed(group for group in self._groups() if group.is_usable())

    @contextmanager
    def blame_server(self, ranks: Sequence[int]) -> Iterator[None]:
        """Turn errors of the store into errors of making the group of ``ranks`` that name the store's server.

        Raises:
            DeadlineError: the store did not answer in time.
            PeerError: the process that served the store has ended.
        """
        try:
            yield
        except StoreSilentError as error:
            why = f"{self.client.server}, which serves the world's store, has not answered in time"
            raise DeadlineError(f"{making(ranks)}: {why}") from error
        except DistNetworkError as error:
            why = f"{self.client.server}, which served the world's store, has ended"
            raise PeerError(f"{making(ranks)}: {why}") from error

    def fresh(self, key: str) -> str:
        """Return ``key``, with as many "+" as are needed to name a group whose ranks have not met yet."""
        with self.blame_server([self.rank]):
            while self.client.check(f"{key}/met", seconds=self.seconds_left()):
                key += "+"
        return key

    def made(self, key: str, ranks: Sequence[int], names: Sequence[str]) -> None:
        """Report that this rank has made the group; the last rank to do so deletes what the ranks met by.

        ``names`` are the names of those keys, below the group's.
        """

        def delete(store: Store) -> None:
            for name in names:
                store.delete_key(f"{key}/{name}")

        with self.blame_server([self.rank]):
            if self.client.ask(lambda store: store.add(f"{key}/made", 1), self.seconds_left()) == len(ranks):
                self.client.tell(delete)

    def leave(self, why: str, *, stays: bool = False) -> None:
        """Report to the other ranks that this rank makes no further calls, and how many it has made in each group.

        If the process ``stays``, the calls that it has posted still complete; otherwise only complete calls count.
        """
        self._ends = not stays
        groups = self._groups()
        for group in groups:
            group.launches.tell()
        counts = {group.key: group.sequence if stays else group.completed() for group in groups}
        self.stalls.leave(why, counts)

    def left(self, key: str, size: int, more: Sequence[str] = ()) -> None:
        """Report that this rank has closed its end of the group, unless its process ends.

        The last rank to do so deletes the group's keys, and ``more`` keys, from the store.
        """
        if self._ends:  # the store's server no longer waits, and torch would report a broken connection
            return

        def tell(store: Store) -> None:
            if store.add(f"{key}/left", 1) == size:
                own = (f"{key}/{name}" for name in ("made", "left", "met"))
                for name in (*own, *more):
                    store.delete_key(name)

        self.client.tell(tell)

    def is_made(self, key: str, size: int) -> bool:
        """Return whether every rank has made the group; also True if the store has ended."""
        try:
            return self.client.ask(lambda store: int(store.add(f"{key}/made", 0))) >= size
        except StoreSilentError:
            return False
        except DistNetworkError:
            return True

    def agreed(self, key: str, own: str) -> str:
        """Return rank 0's value of a setting that all ranks must share, or this rank's value if rank 0 does not arrive.

        Raises:
            WorldError: the ranks disagree on the size of the world or on the releases that they run.
        """
        limit = self.making_deadline
        try:
            if self.rank == 0:
                self.client.set(f"agreed/{key}", own, self.seconds_left())
                return own
            while not (word := self.client.get([f"agreed/{key}"], self.seconds_left())[0]):
                if time.monotonic() >= limit:
                    return own
                self.refuse()
                time.sleep(PAUSE)
        except (StoreSilentError, DistNetworkError):
            return own  # making the first group reports it
        return word

    def wait_until_left(self, size: int) -> None:
        """Wait until the other ranks have left, at most for a while, if this process serves the store."""
        if self._serves:
            self._await_leaving(range(size), LEAVE_SECONDS)

    def _await_leaving(self, ranks: Sequence[int], seconds: float) -> None:
        limit, others = time.monotonic() + seconds, [rank for rank in ranks if rank != self.rank]
        while others and time.monotonic() < limit:
            others = [rank for rank in others if not self.stalls.any_left([rank])]
            time.sleep(0.005)
