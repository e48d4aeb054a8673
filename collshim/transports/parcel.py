"""What travels by letter: the letter itself, and the send or recv that it belongs to, as its own rank sees it."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from collshim.call import Call
from collshim.errors import CollshimError
from collshim.transports.absence import FIRST_SLICE
from collshim.transports.payload import Payload
from collshim.transports.point_to_point import PointToPoint
from collshim.transports.slots import as_bytes, call_from, describe, from_bytes
from collshim.transports.streams import stream_to_follow

if TYPE_CHECKING:
    from collshim.transports.letters import Postbox


class Letter(NamedTuple):
    """What a sender says of its tensor; ``data`` holds the values of one that travels along, flat."""

    source: int
    number: int
    call: Call
    data: Tensor | None

    def fits(self, call: Call) -> bool:
        """Whether a recv described by ``call`` awaits this letter."""
        return self.call.tag == call.tag and call.root in (None, self.source)

    def sealed(self) -> bytes:
        """The letter as bytes."""
        text = describe(self.call)
        data = b"" if self.data is None else as_bytes(self.data).numpy().tobytes()
        return (
            struct.pack("<iiii", self.source, self.number, len(text), -1 if self.data is None else len(data))
            + text
            + data
        )


def opened(text: bytes) -> Letter:
    """The letter that was sealed."""
    source, number, length, count = struct.unpack("<iiii", text[:16])
    call = call_from(text[16 : 16 + length])
    if count < 0 or call.dtype is None:
        return Letter(source, number, call, None)
    data = torch.frombuffer(bytearray(text[16 + length :]) or bytearray(1), dtype=torch.uint8)[:count]
    return Letter(source, number, call, from_bytes(data, call.dtype))


class Parcel:
    """A send or recv on its way, seen by its own rank.

    Attributes:
        arrived: whether its letter has come, or none is awaited; or whether it has failed.
        announced: whether its sender has written that the data is on its way.
        gone_since: since when all of its peers are seen to have left, or None.
    """

    def __init__(self, box: Postbox, call: Call, target: Tensor | None, device: torch.device) -> None:
        self._box = box
        self.call = call
        self.target = target
        self.device = device
        self.stream = stream_to_follow(call, device)
        self.token: Tensor | None = None
        self.joint = False
        self.source: int | None = None
        self.payload: Payload | None = None
        self.failure: CollshimError | None = None
        self.arrived = False
        self.announced = False
        self.gone_since: float | None = None
        self._next_look = time.monotonic() + FIRST_SLICE

    @property
    def nbytes(self) -> int:
        """How many bytes of data are to move."""
        works = [] if self.payload is None else self.payload.works
        return sum(work.nbytes for work in works if isinstance(work, PointToPoint))

    def is_over(self) -> bool:
        """Whether the letter has come, and with it or after it the data; or the failure."""
        return self.arrived and (self.payload is None or all(work.is_completed() for work in self.payload.works))

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once. Who polls looks now and then whether anything can come."""
        if not self.arrived:
            self.collect()
        if not self.is_over() and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + FIRST_SLICE
            try:
                self._box.lookout.look(self)
            except CollshimError as failure:
                self.fail(failure)
        return self.is_over()

    def collect(self) -> None:
        """Take what letters have come, this one's perhaps, without waiting."""
        self._box.collect()

    def fail(self, failure: CollshimError) -> None:
        """This send or recv ends with ``failure``."""
        self.failure, self.payload, self.arrived = failure, None, True

    def wait(self, timeout: float | None) -> Tensor | None:
        """The received tensor; None for a send."""
        limit = None if timeout is None else time.monotonic() + timeout
        self._box.await_letter(self, limit)
        if self.payload is not None:
            self._box.await_data(self, limit)
        if self.failure is not None:
            raise type(self.failure)(*self.failure.args) from self.failure.__cause__
        return self.target
