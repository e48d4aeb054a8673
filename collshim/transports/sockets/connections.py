"""``Connections``: carry messages between the processes of a world, independently of torch's groups.

Every process listens at one address, which it publishes in the store. When a rank first sends to another, it
connects to it and identifies itself with a signed hello; answers arrive on the same connection. So there is at most one
connection for each direction, and everything that one rank sends to another arrives in order.

Small data is sent with its envelope. Larger data is offered. A receiver that may read the sender's memory reads it
there. Any other receiver accepts the offer, and the data is sent to its destination. A thread that waits for a message
handles everything that arrives for any group of the process; if none waits, a background thread does.
"""

from __future__ import annotations

import errno
import os
import socket
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ, EVENT_WRITE

from collshim.transports.sockets.connection import (
    ACCEPT,
    HELLO,
    INLINE_BYTES,
    MESSAGE,
    NOTHING,
    OFFER,
    READABLE,
    RELEASE,
    WAKE,
    WITHDRAWN,
    Connection,
    Destination,
    Frame,
    Inbox,
    Request,
    encode,
)
from collshim.transports.sockets.hello import hello, source_of
from collshim.transports.sockets.inboxes import Inboxes, number_of
from collshim.transports.sockets.listener import BACKLOG, Listener, family_of
from collshim.transports.sockets.offers import Offers
from collshim.transports.sockets.poller import Box, Poller, looks_of
from collshim.transports.sockets.talk import TALK, Talk

_STRANGERS = 256
"""The largest number of connections whose peer has not yet identified itself."""

CLOSED = "its receiver has closed the group"
"""The reason for refusing larger data."""

_WITHDRAWN = "its sender has given it up"

_LONGEST_FLUSH = 5.0
"""How many seconds a leaving process waits until everything it sent has been passed to the sockets."""


class Connections:
    """The connections of one process in one world.

    Args:
        rank: this process's rank in the world.
        host: the address to listen at.
        secret: a secret that only the ranks of the world know.

    Attributes:
        port: the port to which others connect.
        addresses: the host and port of each rank, once the ranks know them.
        lock: held while a message is received, sent, or matched; ``offers``: the data offered to other processes.
        lost: the ranks that can no longer be reached and the ranks that send nothing more, each with the reason.
        talk: the processes' communication apart from messages.
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
        self.lost = self._unreachable, self._ended
        self._inboxes = Inboxes()
        self.offers = Offers()
        self._destinations: dict[tuple[int, int], Destination] = {}
        self._strangers: dict[Connection, None] = {}
        self.talk = Talk(self)
        self._is_closed = False
        self._poller.add(self._listener.socket, self._accept_connections)
        _LIVING.add(self)

    def open(self, addresses: Mapping[int, tuple[str, int]]) -> None:
        """Set the address of each rank of the world."""
        self.addresses = addresses
        hosts = [host for host, _ in addresses.values()]
        self._poller.looks = looks_of(max(map(hosts.count, set(hosts)), default=1))

    def register(self, key: str, inbox: Inbox) -> int:
        """Return the number of the group of this name. ``inbox`` takes its messages, including earlier ones."""
        group = number_of(key)
        with self.lock:
            for source, frame in self._inboxes.add(group, inbox):
                inbox.take(source, frame)
        return group

    def forget(self, group: int) -> None:
        """Drop everything that still arrives for this group."""
        with self.lock:
            self._inboxes.forget(group)

    def send(self, peer: int, frame: Frame, request: Request | None = None) -> None:
        """Send an offer, or a message, whose ``request`` ends once it is on its way.

        Raises:
            OSError: rank ``peer`` can no longer be reached.
        """
        kind, group, number, header, data, turn = frame
        encoded = encode(kind, header, group=group, number=number, nbytes=data.nbytes, turn=turn)
        with self.lock:
            try:
                self.write(peer, encoded, data, request)
            except OSError:
                self.offers.close(number)
                raise

    def offer(self, peer: int, data: memoryview, request: Request, place: int = 0) -> tuple[int, int, memoryview]:
        """Open an offer of larger data; return the kind of its frame, its number, and the data to send with it.

        Up to INLINE_BYTES of data are sent with the offer. If the peer may read this process's memory, pass the address
        as ``place``, which is sent in place of more data. ``request`` ends once the data was taken or sent, or is not
        needed; until then the data must not change.
        """
        with self.lock:
            is_inline = data.nbytes <= INLINE_BYTES
            number = self.offers.add(peer, NOTHING if is_inline else data, request)
            if place and not is_inline:
                return READABLE, number, self.offers.place(number, place)
            return OFFER, number, data if is_inline else NOTHING

    def withdraw(self, is_over: Callable[[Request], bool]) -> None:
        """Withdraw the offers of the requests that are over."""
        with self.lock:
            self.offers.withdraw(is_over)

    def open_offers(self) -> list[Request]:
        """Return the requests whose data no receiver has accepted yet."""
        with self.lock:
            return self.offers.requests()

    def accept(self, source: int, number: int, memory: memoryview, request: Request) -> None:
        """Accept an offer: its data is written to ``memory``, and then ``request`` ends."""
        with self.lock:
            request.begin()
            self._destinations[source, number] = Destination(memory, request)
            self._answer(source, encode(ACCEPT, number=number))

    def release(self, source: int, number: int, why: str = "") -> None:
        """Tell the sender that an offer is over: its data was taken, or ``why`` says why it will never be taken."""
        with self.lock:
            self._answer(source, encode(RELEASE, why.encode(), number=number))

    def released(self, source: int, frame: Frame) -> None:
        """Handle an answer through shared memory, by which a rank says that an offer is over."""
        with self.lock:
            self.offers.release(source, frame)

    def wake(self, peer: int, group: int) -> None:
        """Tell a rank to look for messages in shared memory, unless it has ended."""
        with suppress(OSError):  # ``end_of`` reports it
            self.write(peer, encode(WAKE, group=group))

    def end_of(self, rank: int) -> str:
        """Say how the connection to or from a rank ended, so that the rank sends nothing more; "" if it is open."""
        return self._ended.get(rank, "")

    def watch(self, rank: int) -> None:
        """Connect to a rank that might never have sent anything, so that the end of its process is noticed."""
        with self.lock, suppress(OSError):
            if rank not in self._to and rank not in self._ended:
                self._connection(rank)

    def wait(self, over: Callable[[], bool], seconds: float, box: Box | None = None) -> bool:
        """Handle arrivals until ``over``, a rank ends, or those seconds have passed; return whether ``over`` holds.

        With ``box``, this includes messages that arrive there.
        """
        ended = len(self._ended)
        return self._poller.wait(lambda: over() or len(self._ended) != ended, seconds, box) and over()

    def handle(self, connection: Connection, frame: Frame) -> None:
        """See ``Owner``."""
        source = connection.rank
        if source is None:
            self._greet(connection, frame)
        elif frame.kind in (MESSAGE, OFFER, READABLE):
            self._deliver(source, frame)
        elif frame.kind in TALK:
            self.talk.handle(connection, frame)
        elif frame.kind in (ACCEPT, RELEASE) and 0 < frame.number <= self.offers.last:
            self.offers.answer(connection, frame)
        elif frame.kind == WAKE:
            self._inboxes.wake(frame.group)
        elif frame.kind == WITHDRAWN:
            destination = self.destination(source, frame.number)
            if destination is not None:
                destination.request.end(_WITHDRAWN)
        else:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it sent an invalid frame")

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
        inbox = self._inboxes.of(frame.group)
        if inbox is not None:
            inbox.take(source, frame)
        elif not self._inboxes.keep(source, frame) and frame.number:
            self.release(source, frame.number, CLOSED)

    def _greet(self, connection: Connection, frame: Frame) -> None:
        """Identify the peer of a connection by its signed hello."""
        source = source_of(frame, self._secret, self._rank, self.port)
        if source in self._from or source in self._ended:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it is already connected")
        connection.rank = source
        self._strangers.pop(connection, None)
        self._from[source] = connection

    def write(self, peer: int, frame: bytes, data: memoryview = NOTHING, request: Request | None = None) -> None:
        """Send a frame to a rank, with data if any, on a connection that is made if there is none."""
        with self.lock:
            connection = self._to.get(peer) or self._connection(peer)
            try:
                connection.write(frame, data, request)
            except OSError as error:
                self._lose(connection, error)
                raise

    def _answer(self, peer: int, frame: bytes) -> None:
        """Answer a rank on its own connection, or on a different one if its offer arrived through shared memory."""
        connection = self._from.get(peer)
        try:
            connection = connection or self._to.get(peer) or self._connection(peer)
            connection.write(frame)
        except OSError as error:
            if connection is not None:
                self._lose(connection, error)
            self._fail_destinations(peer, self._ended.get(peer) or error.strerror or str(error))

    def why_unreachable(self, rank: int) -> str:
        """Say why a rank can no longer be reached; "" if it can."""
        return "it was closed" if self._is_closed else self._unreachable.get(rank) or self.end_of(rank)

    def _connection(self, rank: int) -> Connection:
        """Return the connection to a rank, and make it if there is none."""
        if why := self.why_unreachable(rank):
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
        connection.write(encode(HELLO, hello(self._secret, self._rank, rank, port)))
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
        """Accept all pending connections; if too many peers have not identified themselves, drop the oldest of them."""
        for _ in range(BACKLOG):  # bounded, so that many strangers do not keep the ranks waiting
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
        """Drop a connection, unless a rank's hello has arrived on it."""
        self._serve(connection, EVENT_READ)
        if connection.rank is None:
            self._lose(connection, ConnectionAbortedError(errno.ECONNABORTED, "too many connections sent no hello"))

    def _lose(self, connection: Connection, error: OSError) -> None:
        """Close a connection that has ended, and fail all transfers that used it."""
        if connection not in self._all:
            return
        self._all.discard(connection)
        self._strangers.pop(connection, None)
        self._poller.remove(connection.sock)
        connection.sock.close()
        rank, why = connection.rank, error.strerror or str(error)
        if rank is None:
            return
        self._inboxes.drain()
        if self._from.get(rank) is connection:
            del self._from[rank]
            self._ended[rank] = why
            self._fail_destinations(rank, why)
        else:
            del self._to[rank]
            self._unreachable[rank] = why
            self._read_strangers()  # the rank's own connection, with data sent earlier, might not be identified yet
            if rank not in self._from:
                self._ended.setdefault(rank, why)
                self._fail_destinations(rank, why)
        connection.fail(why)
        self.offers.lose(rank, why)

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
        """Send everything that has yet to be sent, and close all connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self.wait(lambda: all(connection.is_flushed for connection in self._all), _LONGEST_FLUSH)
        self._poller.close()
        with self.lock:
            self._close_sockets()

    def disown(self) -> None:
        """Close the sockets in a forked process, so that the others notice when the parent, their owner, ends."""
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
