"""One connection between two processes: frames, in order both ways, and larger data straight into its place."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from typing import NamedTuple, Protocol

HELLO, MESSAGE, OFFER, ACCEPT, RELEASE, DATA, ASK, TELL, OBJECT = range(9)
"""Kinds of frames: who connects; a message with its data; an offer of data, and the answers to it; the data; a question
what the other rank does, and its answer; why the world must end."""

LONGEST_HEADER = 1 << 16
"""Bytes of a message's description."""

INLINE_BYTES = 1 << 16
"""Data of at most so many bytes goes with its envelope."""

_PREFIX = struct.Struct("<BxxxIQQQ")
"""The kind, bytes of the header, the group, the number of the offer, and bytes of the data."""

_BUFFER_BYTES = 4 * (LONGEST_HEADER + INLINE_BYTES)

_LONGEST_GREETING = 256
"""Bytes that are kept of whoever has not said yet who it is; a hello is shorter."""

NOTHING = memoryview(b"")


class Frame(NamedTuple):
    """What comes of one: ``data`` holds only until the next is read."""

    kind: int
    group: int
    number: int
    header: bytes
    data: memoryview


def framed(kind: int, header: bytes = b"", *, group: int = 0, number: int = 0, nbytes: int = 0) -> bytes:
    """The bytes of a frame up to its data."""
    return _PREFIX.pack(kind, len(header), group, number, nbytes) + header


class Request(Protocol):
    """Larger data on its way, as its own rank follows it; called with ``Connections.lock`` held."""

    def begin(self) -> None:
        """The receiver has accepted it."""

    def end(self, why: str) -> None:
        """It has moved, or is not wanted; or with a text, it cannot move."""


class Destination(NamedTuple):
    """Where the data of an accepted offer goes."""

    place: memoryview
    request: Request


class Inbox(Protocol):
    """A group, as its messages come in; called with ``Connections.lock`` held."""

    def take(self, source: int, header: bytes, number: int, data: memoryview) -> None:
        """A message of rank ``source`` in the world; its data, or with a ``number`` the offer of it."""


class Offer(NamedTuple):
    """Data that is sent when its receiver accepts it."""

    peer: int
    data: memoryview
    request: Request


class _Outgoing:
    """Bytes to be sent, which may be the last of a request."""

    __slots__ = ("data", "request")

    def __init__(self, data: memoryview, request: Request | None) -> None:
        self.data = data
        self.request = request


class Owner(Protocol):
    """Whose connections these are; called with its lock held."""

    def handle(self, connection: Connection, frame: Frame) -> None:
        """A frame has come."""

    def destination(self, source: int, number: int) -> Destination | None:
        """Where the data of an accepted offer goes."""
        ...

    def await_room(self, connection: Connection) -> None:
        """Call ``flush`` when the other end takes more."""

    def have_room(self, connection: Connection) -> None:
        """Everything was sent."""


class Connection:
    """One socket. ``rank`` is the other end's in the world, None until it has said so."""

    def __init__(self, owner: Owner, sock: socket.socket, rank: int | None) -> None:
        self.owner, self.sock, self.rank = owner, sock, rank
        self.is_connected = True
        self._outgoing: deque[_Outgoing] = deque()
        self._memory = memoryview(bytearray(_LONGEST_GREETING if rank is None else _BUFFER_BYTES))
        self._begin = self._end = 0
        self._place: memoryview | None = None
        self._destination: Destination | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_flushed(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._outgoing

    def write(self, frame: bytes, data: memoryview = NOTHING, request: Request | None = None) -> None:
        """Send a frame and its data, now or when the other end takes it; data that is kept for later is not copied."""
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
        """Send what the other end takes now."""
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
        """Take what has come."""
        into = self._memory[self._end :] if self._place is None else self._place
        try:
            count = self.sock.recv_into(into)
        except BlockingIOError:
            return
        if not count:
            raise ConnectionResetError(errno.ECONNRESET, "it was closed")
        if self._place is None:
            self._end += count
        else:
            self._fill(count)
        self._parse()

    def _parse(self) -> None:
        while self._place is None and self._end - self._begin >= _PREFIX.size:
            kind, length, group, number, nbytes = _PREFIX.unpack_from(self._memory, self._begin)
            start = self._begin + _PREFIX.size
            if kind == DATA and self.rank is not None:
                self._begin = start
                self._open(number, nbytes)
                continue
            if length > LONGEST_HEADER or nbytes > INLINE_BYTES or self._is_too_long(length + nbytes):
                raise ConnectionAbortedError(errno.ECONNABORTED, "what it sends is no message")
            end = start + length + nbytes
            if end > self._end:
                break
            self._begin = end
            header = bytes(self._memory[start : start + length])
            self.owner.handle(self, Frame(kind, group, number, header, self._memory[start + length : end]))
            self._extend()
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin > _BUFFER_BYTES // 2:
            left = self._end - self._begin
            self._memory[:left] = bytes(self._memory[self._begin : self._end])
            self._begin, self._end = 0, left

    def _is_too_long(self, nbytes: int) -> bool:
        """Whether a frame of a stranger has more bytes than a hello may have."""
        return self.rank is None and nbytes > _LONGEST_GREETING - _PREFIX.size

    def _extend(self) -> None:
        """Have room for messages, once the other end has said who it is."""
        if self.rank is not None and len(self._memory) < _BUFFER_BYTES:
            memory = memoryview(bytearray(_BUFFER_BYTES))
            memory[: self._end] = self._memory[: self._end]
            self._memory = memory

    def _open(self, number: int, nbytes: int) -> None:
        """The data of an accepted offer begins here."""
        destination = self._destination = self.owner.destination(self.rank or 0, number)
        if destination is None or destination.place.nbytes != nbytes:
            raise ConnectionAbortedError(errno.ECONNABORTED, "what it sends was not accepted")
        count = min(nbytes, self._end - self._begin)
        destination.place[:count] = self._memory[self._begin : self._begin + count]
        self._begin += count
        self._place = destination.place
        self._fill(count)

    def _fill(self, count: int) -> None:
        """So many bytes more of the data are in their place."""
        destination, self._place = self._destination, None if self._place is None else self._place[count:]
        if destination is not None and not self._place:
            self._place = self._destination = None
            destination.request.end("")

    def fail(self, why: str) -> None:
        """What is still on its way here has failed."""
        outgoing, self._outgoing = self._outgoing, deque()
        for each in outgoing:
            if each.request is not None:
                each.request.end(why)
        if self._destination is not None:
            self._destination.request.end(why)
            self._destination = None
