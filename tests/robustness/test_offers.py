"""Offers of larger data between processes: read where it lies, sent if that is not possible, and withdrawn."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collshim.transports.sockets.connection import INLINE_BYTES, Frame
from collshim.transports.sockets.connections import CLOSED, Connections
from collshim.transports.sockets.offers import place_of
from tests.robustness.scripts import ranks
from tests.robustness.told import read_reports

LOOPBACK = "127.0.0.1"
DATA = bytes(range(256)) * (INLINE_BYTES // 128)
KEY = "a group"
GIVES_UP = """
import sys, time, torch, collshim
from tests.robustness.told import tell
comm = collshim.current().communicator
comm.barrier().wait()
tensor = torch.ones(10**6)
if comm.rank == 0:
    with collshim.options(timeout=1.0):
        tell(lambda: comm.send(tensor, 1).wait())
    tensor.fill_(2.0)
    print("changed", flush=True)
    sys.stdin.read()
else:
    print("ready", flush=True)
    sys.stdin.readline()
    tell(lambda: comm.recv(0, like=torch.zeros(10**6)).wait().unique().tolist())
"""


class Sent:
    """A send of larger data."""

    def __init__(self) -> None:
        self.begun, self.ended = False, list[str]()

    def begin(self) -> None:
        self.begun = True

    def end(self, why: str) -> None:
        self.ended.append(why)


class Box:
    """A receiver that keeps the offers which it takes."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def take(self, source: int, frame: Frame) -> None:
        self.frames.append(frame._replace(data=memoryview(bytes(frame.data))))

    def drain(self) -> None:
        """Take nothing: all comes through the socket."""

    def wake(self) -> None:
        """Do the same."""


class Pair:
    """A rank that offers, and the rank to which it does."""

    def __init__(self, sender: Connections, receiver: Connections) -> None:
        self.sender, self.receiver, self.box = sender, receiver, Box()
        self.group = receiver.register(KEY, self.box)
        self.memory = ctypes.create_string_buffer(DATA, len(DATA))

    def offer(self, nbytes: int = len(DATA), *, is_readable: bool = False) -> Sent:
        request, place = Sent(), ctypes.addressof(self.memory) if is_readable else 0
        data = memoryview(self.memory).cast("B")[:nbytes]
        kind, number, sent = self.sender.offer(0, data, request, place)
        self.sender.send(0, Frame(kind, self.group, number, b"call", sent))
        return request

    def taken(self) -> Frame:
        """Return the next offer that the receiver takes."""
        assert self.receiver.wait(lambda: bool(self.box.frames), 10)
        return self.box.frames.pop()

    def accept(self, number: int, nbytes: int = len(DATA)) -> tuple[bytes, list[str]]:
        """Accept an offer; return the data, and how that ended."""
        received, request = bytearray(nbytes), Sent()
        self.receiver.accept(1, number, memoryview(received), request)
        assert self.receiver.wait(lambda: bool(request.ended), 10)
        return bytes(received), request.ended


@pytest.fixture
def pair() -> Iterator[Pair]:
    with _connected() as (receiver, sender):
        yield Pair(sender, receiver)


@contextmanager
def _connected() -> Iterator[tuple[Connections, Connections]]:
    both = receiver, sender = Connections(0, LOOPBACK, b"secret"), Connections(1, LOOPBACK, b"secret")
    sender.open({0: (LOOPBACK, receiver.port)})
    try:
        yield both
    finally:
        sender.close()
        receiver.close()


def _is_over(sender: Connections, request: Sent) -> bool:
    return sender.wait(lambda: bool(request.ended), 10)


def test_data_up_to_the_limit_travels_with_its_offer(pair: Pair) -> None:
    pair.offer(INLINE_BYTES, is_readable=True)
    assert bytes(pair.taken().data) == DATA[:INLINE_BYTES]


@pytest.mark.parametrize("is_readable", [False, True])
def test_accepted_offer_is_sent(pair: Pair, is_readable: bool) -> None:
    sent = pair.offer(is_readable=is_readable)
    assert pair.accept(pair.taken().number) == (DATA, [""])
    assert _is_over(pair.sender, sent)
    assert (sent.begun, sent.ended) == (True, [""])


def test_offer_tells_where_its_data_can_be_read(pair: Pair) -> None:
    pair.offer(is_readable=True)
    frame = pair.taken()
    place = place_of(frame.data)
    assert ctypes.string_at(place.data, len(DATA)) == DATA
    assert ctypes.c_uint64.from_address(place.mark).value == frame.number


@pytest.mark.parametrize("why", ["", CLOSED])
def test_released_offer_ends_with_the_reason(pair: Pair, why: str) -> None:
    sent = pair.offer(is_readable=True)
    frame = pair.taken()
    pair.receiver.release(1, frame.number, why)
    assert _is_over(pair.sender, sent)
    assert sent.ended == [why]
    assert ctypes.c_uint64.from_address(place_of(frame.data).mark).value == 0


@pytest.mark.parametrize("is_readable", [False, True])
def test_withdrawn_offer_is_not_sent(pair: Pair, is_readable: bool) -> None:
    sent, other = pair.offer(is_readable=is_readable), pair.offer(is_readable=is_readable)
    first, second = pair.taken(), pair.taken()
    pair.sender.withdraw(lambda request: request is sent)
    assert pair.sender.open_offers() == [other]
    numbers = sorted([first.number, second.number])
    assert pair.accept(numbers[0]) == (bytes(len(DATA)), ["its sender has given it up"])
    assert pair.accept(numbers[1]) == (DATA, [""])


def test_mark_of_a_withdrawn_offer_is_gone(pair: Pair) -> None:
    sent = pair.offer(is_readable=True)
    mark = place_of(pair.taken().data).mark
    pair.sender.withdraw(lambda request: request is sent)
    assert ctypes.c_uint64.from_address(mark).value == 0


def test_offer_whose_mark_is_taken_by_a_later_one_is_sent(pair: Pair) -> None:
    pair.offer(is_readable=True)
    frame = pair.taken()
    for _ in range(256):
        pair.offer(is_readable=True)
    assert ctypes.c_uint64.from_address(place_of(frame.data).mark).value == frame.number + 256
    assert pair.accept(frame.number) == (DATA, [""])


def test_answer_to_an_offer_never_made_ends_the_connection(pair: Pair) -> None:
    sent = pair.offer()
    pair.receiver.release(1, pair.taken().number + 1)
    assert _is_over(pair.sender, sent)
    assert sent.ended == ["it sent an invalid frame"]


@pytest.mark.parametrize("transport", ["auto", "gloo"])
def test_receiver_stopped_beyond_the_deadline_gets_no_changed_data(transport: str) -> None:
    with ranks(GIVES_UP, 2, COLLSHIM_TRANSPORT=transport, COLLSHIM_TIMEOUT="20") as processes:
        assert processes[1].stdout.readline() == "ready\n"
        processes[1].stop()
        (sent,) = read_reports(processes[0].stdout.readline())
        assert processes[0].stdout.readline() == "changed\n"
        processes[1].send_signal(signal.SIGCONT)
        (received,) = read_reports(processes[1].ended().out)
    assert sent.kind == "DeadlineError", sent
    assert (received.ours, received.value) == (True, None), received
