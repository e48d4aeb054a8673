"""Connections: how messages travel between the processes of a world, beside torch's groups.

Every process listens at one address, which it tells the others through the store. Whoever sends to a rank for the first
time connects to it, and says by a signed hello which rank it is; answers come back on the same connection. So there is
at most one connection for each direction, and what one rank sends to another stays in order.

Small data travels with its envelope. Larger data is offered, and follows when the receiver accepts it: straight into
its place. Whoever waits for a message takes what has come for all groups of the process; while nobody waits, a thread
does.
"""

from __future__ import annotations

import errno
import os
import socket
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from selectors import EVENT_READ, EVENT_WRITE

from collshim.transports.sockets.connection import (
    ACCEPT,
    DATA,
    HELLO,
    INLINE_BYTES,
    MESSAGE,
    NOTHING,
    OFFER,
    RELEASE,
    Connection,
    Destination,
    Frame,
    Inbox,
    Offer,
    Request,
    framed,
)
from collshim.transports.sockets.hello import hello, source_of
from collshim.transports.sockets.listener import BACKLOG, Listener, family_of
from collshim.transports.sockets.poller import Poller
from collshim.transports.sockets.talk import TALK, Talk

_KEPT = 1024
"""Groups that have ended that are remembered."""

_STRANGERS = 256
"""Connections that may not have said yet who they are from."""

CLOSED = "its receiver has closed the group"
"""Why larger data is not taken."""

_LONGEST_FLUSH = 5.0
"""Seconds that a process which leaves waits until what it sent is on its way."""


class Connections:
    """One process's, in one world.

    Args:
        rank: this process's rank in the world.
        host: where it listens.
        secret: what all ranks of the world know, and nobody else.

    Attributes:
        port: where it listens.
        addresses: host and port of each rank, once the ranks know them.
        lock: held while a message is taken, sent, or matched.
        talk: what processes say to each other beside messages.
    """

    def __init__(self, rank: int, host: str, secret: bytes) -> None:
        self._rank = rank
        self._secret = secret
        self._poller = Poller()
        self.lock = self._poller.lock
        self.addresses: Mapping[int, tuple[str, int]] = {}
        self._listener = Listener(host)
        self.port = self._listener.port
        self._all: set[Connection] = set()
        self._to: dict[int, Connection] = {}
        self._from: dict[int, Connection] = {}
        self._unreachable: dict[int, str] = {}
        self._ended: dict[int, str] = {}
        self._inboxes: dict[int, weakref.ref[Inbox]] = {}  # a group that the program dropped is not kept
        self._early: dict[int, list[tuple[int, Frame]]] = {}
        self._closed_groups: dict[int, None] = {}
        self._numbers = 0
        self._offers: dict[int, Offer] = {}
        self._destinations: dict[tuple[int, int], Destination] = {}
        self._strangers: dict[Connection, None] = {}
        self.talk = Talk(self)
        self._is_closed = False
        self._poller.add(self._listener.socket, self._accept_connections)
        _LIVING.add(self)

    def open(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        """Where each rank of the world listens."""
        self.addresses = addresses

    def register(self, key: str, inbox: Inbox) -> int:
        """The number of the group of this name, whose messages ``inbox`` takes; those that came before, first."""
        group = _number(key)
        with self.lock:
            self._inboxes[group] = weakref.ref(inbox)
            for source, frame in self._early.pop(group, []):
                inbox.take(source, frame.header, frame.number, frame.data)
        return group

    def forget(self, group: int) -> None:
        """Whatever still comes for this group is dropped."""
        with self.lock:
            self._inboxes.pop(group, None)
            self._closed_groups[group] = None
            while len(self._closed_groups) > _KEPT:
                del self._closed_groups[next(iter(self._closed_groups))]

    def send(self, peer: int, group: int, header: bytes, data: bytes, request: Request | None = None) -> None:
        """Send a message with at most EAGER_BYTES of data; ``request`` ends when it is on its way.

        Raises:
            OSError: rank ``peer`` cannot be reached any more.
        """
        self.write(peer, framed(MESSAGE, header, group=group, nbytes=len(data)) + data, request=request)

    def offer(self, peer: int, group: int, header: bytes, data: memoryview, request: Request) -> None:
        """Larger data is offered, and goes along where it is not much larger.

        ``request`` ends once it was taken or sent, or is not wanted; till then the data must not change.

        Raises:
            OSError: rank ``peer`` cannot be reached any more.
        """
        with self.lock:
            self._numbers += 1
            number, goes_along = self._numbers, data.nbytes <= INLINE_BYTES
            self._offers[number] = Offer(peer, NOTHING if goes_along else data, request)
            try:
                inline = data if goes_along else NOTHING
                self.write(peer, framed(OFFER, header, group=group, number=number, nbytes=inline.nbytes), inline)
            except OSError:
                self._offers.pop(number, None)
                raise

    def offered(self) -> list[Request]:
        """The requests whose data no receiver has accepted."""
        with self.lock:
            return [offer.request for offer in self._offers.values()]

    def accept(self, source: int, number: int, place: memoryview, request: Request) -> None:
        """The data of an offer shall come to ``place``; then ``request`` ends."""
        with self.lock:
            connection = self._from.get(source)
            if connection is None:
                request.end(self._ended.get(source, "it was closed"))
                return
            request.begin()
            self._destinations[source, number] = Destination(place, request)
            self._answer(connection, ACCEPT, number)

    def release(self, source: int, number: int, why: str = "") -> None:
        """Tell the sender that it is done with an offer: its data went along and was taken; or ``why`` it never is."""
        with self.lock:
            connection = self._from.get(source)
            if connection is not None:
                self._answer(connection, RELEASE, number, why.encode())

    def end_of(self, rank: int) -> str:
        """How the connection to or from a rank ended, which sends nothing any more; "" where it stands."""
        return self._ended.get(rank, "")

    def watch(self, rank: int) -> None:
        """Be told when this rank's process ends, which has perhaps never sent anything."""
        with self.lock, suppress(OSError):
            if rank not in self._to and rank not in self._ended:
                self._connection(rank)

    def wait(self, over: Callable[[], bool], seconds: float) -> bool:
        """Take what comes until ``over``; whether it is, after at most that long, or sooner when a rank has ended."""
        ended = len(self._ended)
        return self._poller.wait(lambda: over() or len(self._ended) != ended, seconds) and over()

    def handle(self, connection: Connection, frame: Frame) -> None:
        """See ``Owner``."""
        source = connection.rank
        if source is None:
            self._greet(connection, frame)
        elif frame.kind in (MESSAGE, OFFER):
            self._deliver(source, frame)
        elif frame.kind in TALK:
            self.talk.handle(connection, frame)
        elif frame.kind in (ACCEPT, RELEASE) and frame.number in self._offers:
            offer = self._offers.pop(frame.number)
            if offer.peer != source:
                raise ConnectionAbortedError(errno.ECONNABORTED, "it answers what it was not offered")
            if frame.kind == RELEASE:
                offer.request.end(frame.header.decode(errors="replace"))
                return
            offer.request.begin()
            connection.write(framed(DATA, number=frame.number, nbytes=offer.data.nbytes), offer.data, offer.request)
        else:
            raise ConnectionAbortedError(errno.ECONNABORTED, "what it sends is no message")

    def destination(self, source: int, number: int) -> Destination | None:
        """See ``Owner``."""
        return self._destinations.pop((source, number), None)

    def await_room(self, connection: Connection) -> None:
        """See ``Owner``."""
        if connection in self._all:
            self._poller.await_room(connection.sock, awaits=True)

    def have_room(self, connection: Connection) -> None:
        """See ``Owner``."""
        if connection in self._all:
            self._poller.await_room(connection.sock, awaits=False)

    def _deliver(self, source: int, frame: Frame) -> None:
        found = self._inboxes.get(frame.group)
        inbox = None if found is None else found()
        if inbox is not None:
            inbox.take(source, frame.header, frame.number, frame.data)
        elif found is None and frame.group not in self._closed_groups:
            self._early.setdefault(frame.group, []).append((source, frame._replace(data=memoryview(bytes(frame.data)))))
        elif frame.number:
            self.release(source, frame.number, CLOSED)

    def _greet(self, connection: Connection, frame: Frame) -> None:
        """Learn which rank a connection is from; whoever cannot sign is no rank."""
        source = source_of(frame, self._secret, self._rank, self.port)
        if source in self._from or source in self._ended:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it is connected already")
        connection.rank = source
        self._strangers.pop(connection, None)
        self._from[source] = connection

    def write(self, peer: int, frame: bytes, data: memoryview = NOTHING, request: Request | None = None) -> None:
        """Send a frame to a rank, and perhaps data, on a connection that is made if there is none."""
        with self.lock:
            connection = self._to.get(peer) or self._connection(peer)
            try:
                connection.write(frame, data, request)
            except OSError as error:
                self._lose(connection, error)
                raise

    def _answer(self, connection: Connection, kind: int, number: int, header: bytes = b"") -> None:
        try:
            connection.write(framed(kind, header, number=number))
        except OSError as error:
            self._lose(connection, error)

    def _connection(self, rank: int) -> Connection:
        """The one to a rank; made where there is none yet."""
        why = "it was closed" if self._is_closed else self._unreachable.get(rank) or self._ended.get(rank)
        if why:
            raise ConnectionResetError(errno.ECONNRESET, why)
        host, port = self.addresses[rank]
        sock = socket.socket(family_of(host))
        sock.setblocking(False)
        code = sock.connect_ex((host, port))
        connection = Connection(self, sock, rank)
        connection.is_connected = code == 0
        self._to[rank] = connection
        self._add(connection)
        if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
            error = OSError(code, os.strerror(code))
            self._lose(connection, error)
            raise error
        connection.write(framed(HELLO, hello(self._secret, self._rank, rank, port)))
        if code:
            self.await_room(connection)
        return connection

    def _add(self, connection: Connection) -> None:
        self._all.add(connection)
        self._poller.add(connection.sock, partial(self._serve, connection))

    def _serve(self, connection: Connection, events: int) -> None:
        if connection not in self._all:
            return
        try:
            if events & EVENT_READ:
                connection.read()
            if events & EVENT_WRITE:
                connection.flush()
        except OSError as error:
            self._lose(connection, error)
        except BaseException:
            self._lose(connection, InterruptedError(errno.EINTR, "it was interrupted"))
            raise

    def _accept_connections(self, events: int) -> None:
        """Take whoever has come by now; of those that do not say who they are the oldest go."""
        for _ in range(BACKLOG):  # strangers that come without end must not keep the others waiting
            sock = self._listener.accept()
            if sock is None:
                break
            connection = Connection(self, sock, None)
            self._add(connection)
            self._strangers[connection] = None
            self._serve(connection, EVENT_READ)
            if len(self._strangers) > _STRANGERS:
                self._turn_away(next(iter(self._strangers)))

    def _turn_away(self, connection: Connection) -> None:
        """Drop a connection, unless the hello of a rank has come just now."""
        self._serve(connection, EVENT_READ)
        if connection.rank is None:
            self._lose(connection, ConnectionAbortedError(errno.ECONNABORTED, "too many said no hello"))

    def _lose(self, connection: Connection, error: OSError) -> None:
        """A connection has ended, and with it what was on its way there, or from there."""
        if connection not in self._all:
            return
        self._all.discard(connection)
        self._strangers.pop(connection, None)
        self._poller.remove(connection.sock)
        connection.sock.close()
        rank, why = connection.rank, error.strerror or str(error)
        if rank is None:
            return
        if self._from.get(rank) is connection:
            del self._from[rank]
            self._ended[rank] = why
            self._fail_destinations(rank, why)
        else:
            del self._to[rank]
            self._unreachable[rank] = why
            self._read_strangers()  # what it sent before may not have been accepted yet
            if rank not in self._from:
                self._ended.setdefault(rank, why)
        connection.fail(why)
        for number in [number for number, offer in self._offers.items() if offer.peer == rank]:
            self._offers.pop(number).request.end(why)

    def _fail_destinations(self, source: int, why: str) -> None:
        for key in [key for key in self._destinations if key[0] == source]:
            self._destinations.pop(key).request.end(why)

    def _read_strangers(self) -> None:
        self._accept_connections(0)
        for connection in [each for each in self._all if each.rank is None]:
            try:
                connection.read()
            except OSError as error:
                self._lose(connection, error)

    def close(self) -> None:
        """Send what is on its way, and end all connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self.wait(lambda: all(connection.is_flushed for connection in self._all), _LONGEST_FLUSH)
        self._poller.close()
        with self.lock:
            self._close_sockets()

    def disown(self) -> None:
        """In a process that was forked off: the connections are its parent's, who shall be seen to end when it does."""
        self._is_closed = True
        self._poller.disown()
        self._close_sockets()

    def _close_sockets(self) -> None:
        self._listener.close()
        for connection in self._all:
            connection.sock.close()
        self._all.clear()


_LIVING: weakref.WeakSet[Connections] = weakref.WeakSet()


def _disown() -> None:
    for connections in list(_LIVING):
        connections.disown()
    _LIVING.clear()


os.register_at_fork(after_in_child=_disown)


def _number(key: str) -> int:
    return int.from_bytes(sha256(key.encode()).digest()[:8], "little")
