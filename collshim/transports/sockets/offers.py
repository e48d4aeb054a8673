"""The larger data that a process offers to others: it stays in place until its receiver has it, or refuses it."""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable
from typing import NamedTuple

from collshim.transports.sockets.connection import (
    DATA,
    RELEASE,
    WITHDRAWN,
    Connection,
    Frame,
    Request,
    encode,
)

_PLACE = struct.Struct("<QQ")

_MARKS = 256
"""The number of words for marks; an offer that is older by this number has no mark, and must be accepted."""


class Place(NamedTuple):
    """Addresses in the memory of the process that offers: of the data, and of the offer's mark."""

    data: int
    mark: int


def place_of(encoded: memoryview) -> Place:
    """Return the place that an offer contains.

    Raises:
        struct.error: the offer contains none.
    """
    return Place(*_PLACE.unpack(encoded))


class Offer(NamedTuple):
    """Data that is sent once its receiver accepts it."""

    peer: int
    data: memoryview
    request: Request


class Offers:
    """The open offers of one process; used with ``Connections.lock`` held.

    A receiver that reads the data in this process's memory does not ask first. So each open offer has a mark, a word
    with the offer's number. A receiver that finds a different number there after it has read the data must not use the
    data.

    Attributes:
        last: the number of the newest offer.
    """

    def __init__(self) -> None:
        self.last = 0
        self._open: dict[int, Offer] = {}
        self._marks = (ctypes.c_uint64 * _MARKS)()

    def add(self, peer: int, data: memoryview, request: Request) -> int:
        """Open an offer to rank ``peer``; return its number."""
        self.last = number = self.last + 1
        self.open(number, peer, data, request)
        return number

    def open(self, number: int, peer: int, data: memoryview, request: Request) -> None:
        """Open an offer that already has a number: the compiled core has made it, and set its mark."""
        self._open[number] = Offer(peer, data, request)
        self._marks[number % _MARKS] = number

    def marks(self) -> tuple[int, int]:
        """Return the address of the words for marks, and their number; a mark is at its number modulo that."""
        return ctypes.addressof(self._marks), _MARKS

    def place(self, number: int, address: int) -> memoryview:
        """Encode where the data of an offer can be read, at an address in this process; see ``place_of``."""
        mark = ctypes.addressof(self._marks) + number % _MARKS * ctypes.sizeof(ctypes.c_uint64)
        return memoryview(bytearray(_PLACE.pack(address, mark)))

    def answer(self, connection: Connection, frame: Frame) -> None:
        """Send the data of an offer that its receiver accepts, or end the request of an offer that it refuses.

        Raises:
            OSError: the answer is from a rank other than the receiver, or the data could not be sent.
        """
        if frame.kind == RELEASE:
            self.release(connection.rank, frame)
            return
        offer = self._answered(connection.rank, frame.number)
        if offer is None:
            connection.write(encode(WITHDRAWN, number=frame.number))
            return
        offer.request.begin()
        connection.write(encode(DATA, number=frame.number, nbytes=offer.data.nbytes), offer.data, offer.request)

    def release(self, peer: int | None, frame: Frame) -> None:
        """End the request of an offer that a rank refuses, or whose data it has.

        Raises:
            OSError: the answer is from a rank other than the receiver.
        """
        offer = self._answered(peer, frame.number)
        if offer is not None:
            offer.request.end(frame.header.decode(errors="replace"))

    def _answered(self, peer: int | None, number: int) -> Offer | None:
        """Close an offer that a rank has answered, and return it; None if it was withdrawn."""
        offer = self._open.get(number)
        if offer is not None and offer.peer != peer:
            raise ConnectionAbortedError(errno.ECONNABORTED, "it answered an offer that was not made to it")
        return self.close(number)

    def close(self, number: int) -> Offer | None:
        """Close an offer, and return it if it was open."""
        if self._marks[number % _MARKS] == number:
            self._marks[number % _MARKS] = 0
        return self._open.pop(number, None)

    def withdraw(self, is_over: Callable[[Request], bool]) -> None:
        """Close the offers of the requests that are over; the memory of their data may change from now on."""
        for number in [number for number, offer in self._open.items() if is_over(offer.request)]:
            self.close(number)

    def lose(self, peer: int, why: str) -> None:
        """End the requests of all offers to a rank that can no longer be reached."""
        for number in [number for number, offer in self._open.items() if offer.peer == peer]:
            offer = self.close(number)
            if offer is not None:
                offer.request.end(why)

    def requests(self) -> list[Request]:
        """Return the requests of all open offers."""
        return [offer.request for offer in self._open.values()]
