"""One connection between two processes: ordered frames in both directions; larger data is read into its destination."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from typing import NamedTuple, Protocol

HELLO, MESSAGE, OFFER, READABLE, ACCEPT, RELEASE, DATA, WITHDRAWN, ASK, TELL, OBJECT, WAKE = range(12)
"""The kinds of frames: the greeting; a message with its data; an offer of data; an offer that says where the data can
be read; the two answers to an offer; the data, or a note that the offer was withdrawn; a question about a rank's
activity, and its answer; a reason why the world must end; a note that there is something to read in shared memory."""

LONGEST_HEADER = 1 << 16
"""The largest number of bytes in a message's description."""

INLINE_BYTES = 1 << 16
"""Data of up to this many bytes is sent with its envelope."""

_PREFIX = struct.Struct("<BxxxIQQQQ")
"""The kind, the header's length in bytes, the group, the offer's number, the length of the data, and the turn."""

_BUFFER_BYTES = 4 * (LONGEST_HEADER + INLINE_BYTES)

_LONGEST_GREETING = 256
"""How many bytes are buffered from a peer that has not yet identified itself; a hello is shorter."""

NOTHING = memoryview(b"")


class Frame(NamedTuple):
    """A received frame; ``data`` is valid only until the next one is read.

    ``turn`` is a message's position among its sender's messages in the group; 0 if all of them come through the socket.
    """

    kind: int
    group: int
    number: int
    header: bytes
    data: memoryview
    turn: int = 0


def encode(kind: int, header: bytes = b"", *, group: int = 0, number: int = 0, nbytes: int = 0, turn: int = 0) -> bytes:
    """Encode a frame without its data."""
    return _PREFIX.pack(kind, len(header), group, number, nbytes, turn) + header


class Request(Protocol):
    """A transfer of larger data, as its own rank tracks it; called with ``Connections.lock`` held."""

    def begin(self) -> None:
        """Note that the receiver has accepted the data."""

    def end(self, why: str) -> None:
        """Note that the transfer is over; ``why`` is the failure, or empty if the data was moved or is not needed."""


class Destination(NamedTuple):
    """The memory for the data of an accepted offer."""

    memory: memoryview
    request: Request


class Inbox(Protocol):
    """A group's receiver of messages; called with ``Connections.lock`` held."""

    def take(self, source: int, frame: Frame) -> None:
        """Take a message of rank ``source`` in the world, with its data or an offer of it."""

    def drain(self) -> None:
        """Take the messages in shared memory, if the group has any."""

    def wake(self) -> None:
        """Take the messages in shared memory because another rank asks for it."""


class _Outgoing:
    """Bytes that have yet to be sent, after which a request might be complete."""

    __slots__ = ("data", "request")

    def __init__(self, data: memoryview, request: Request | None) -> None:
        self.data = data
        self.request = request


class Owner(Protocol):
    """The owner of connections; called with its lock held."""

    def handle(self, connection: Connection, frame: Frame) -> None:
        """Handle a frame that was received."""

    def destination(self, source: int, number: int) -> Destination | None:
        """Return the memory for the data of an accepted offer."""
        ...

    def await_room(self, connection: Connection) -> None:
        """Call ``flush`` when the socket can take more data."""

    def have_room(self, connection: Connection) -> None:
        """Note that everything was sent."""


class Connection:
    """One socket. ``rank`` is the peer's rank in the world, or None until it has identified itself."""

    def __init__(self, owner: Owner, sock: socket.socket, rank: int | None) -> None:
        self.owner, self.sock, self.rank = owner, sock, rank
        self.is_connected = True
        self._outgoing: deque[_Outgoing] = deque()
        self._memory = memoryview(bytearray(_LONGEST_GREETING if rank is None else _BUFFER_BYTES))
        self._begin = self._end = 0
        self._target: memoryview | None = None
        self._destination: Destination | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_flushed(self) -> bool:
        """Whether everything has been passed to the socket."""
        return not self._outgoing

    def write(self, frame: bytes, data: memoryview = NOTHING, request: Request | None = None) -> None:
        """Send a frame and its data, now or when the socket takes them; data that has to wait is not copied."""
        count = 0
        if self.is_connected and not self._outgoing:
            try:
                count = self.sock.sendmsg([frame, data]) if data else self.sock.send(frame)
            except BlockingIOError:
                count = 0
        rest = data[max(0, count - len(frame)) :]
        if count < len(frame):
            self._outgoing.append(_Outgoing(memoryview(frame)[count:], None if rest else request))
        if rest:
            self._outgoing.append(_Outgoing(rest, request))
        if self._outgoing:
            self.owner.await_room(self)
        elif request is not None:
            request.end("")

    def flush(self) -> None:
        """Send as much as the socket takes now."""
        if not self.is_connected:
            failure = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure:
                raise OSError(failure, os.strerror(failure))
            self.is_connected = True
        while self._outgoing:
            first = self._outgoing[0]
            try:
                first.data = first.data[self.sock.send(first.data) :]
            except BlockingIOError:
                return
            if not first.data:
                self._outgoing.popleft()
                if first.request is not None:
                    first.request.end("")
        self.owner.have_room(self)

    def read(self) -> None:
        """Read and handle what has arrived."""
        into = self._memory[self._end :] if self._target is None else self._target
        try:
            count = self.sock.recv_into(into)
        except BlockingIOError:
            return
        if not count:
            raise ConnectionResetError(errno.ECONNRESET, "it was closed")
        if self._target is None:
            self._end += count
        else:
            self._fill(count)
        self._parse()

    def _parse(self) -> None:
        while self._target is None and self._end - self._begin >= _PREFIX.size:
            kind, length, group, number, nbytes, turn = _PREFIX.unpack_from(self._memory, self._begin)
            start = self._begin + _PREFIX.size
            if kind == DATA and self.rank is not None:
                self._begin = start
                self._open(number, nbytes)
                continue
            if length > LONGEST_HEADER or nbytes > INLINE_BYTES or self._is_too_long(length + nbytes):
                raise ConnectionAbortedError(errno.ECONNABORTED, "it sent an invalid frame")
            end = start + length + nbytes
            if end > self._end:
                break
            self._begin = end
            header = bytes(self._memory[start : start + length])
            self.owner.handle(self, Frame(kind, group, number, header, self._memory[start + length : end], turn))
            self._extend()
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin > _BUFFER_BYTES // 2:
            left = self._end - self._begin
            self._memory[:left] = bytes(self._memory[self._begin : self._end])
            self._begin, self._end = 0, left

    def _is_too_long(self, nbytes: int) -> bool:
        """Return whether a peer that has not identified itself sends a frame that is too long for a hello."""
        return self.rank is None and nbytes > _LONGEST_GREETING - _PREFIX.size

    def _extend(self) -> None:
        """Enlarge the buffer for messages, once the peer has identified itself."""
        if self.rank is not None and len(self._memory) < _BUFFER_BYTES:
            memory = memoryview(bytearray(_BUFFER_BYTES))
            memory[: self._end] = self._memory[: self._end]
            self._memory = memory

    def _open(self, number: int, nbytes: int) -> None:
        """Start to receive the data of an accepted offer."""
        destination = self._destination = self.owner.destination(self.rank or 0, number)
        if destination is None or destination.memory.nbytes != nbytes:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it sent data that was not accepted")
        count = min(nbytes, self._end - self._begin)
        destination.memory[:count] = self._memory[self._begin : self._begin + count]
        self._begin += count
        self._target = destination.memory
        self._fill(count)

    def _fill(self, count: int) -> None:
        """Note that ``count`` more bytes of the data have arrived."""
        destination, self._target = self._destination, None if self._target is None else self._target[count:]
        if destination is not None and not self._target:
            self._target = self._destination = None
            destination.request.end("")

    def fail(self, why: str) -> None:
        """Fail all transfers that are in progress on this connection."""
        outgoing, self._outgoing = self._outgoing, deque()
        for each in outgoing:
            if each.request is not None:
                each.request.end(why)
        if self._destination is not None:
            self._destination.request.end(why)
            self._destination = None
