"""The pipes between two ranks: order, room, turns, and who has to be woken; all forms have one layout."""

from __future__ import annotations

import os
import random
from array import array
from collections import deque
from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import Any, NamedTuple, cast

import pytest

from collshim.transports.shared_memory import group, layout, pipes, segment
from collshim.transports.shared_memory.layout import ASLEEP, FULL, PUSHED
from collshim.transports.sockets.connection import READABLE, Request
from collshim.transports.sockets.offers import Offers
from tests.shared_memory.children import Child
from tests.shared_memory.rings import TOKEN, Group, compiled, missing

ROOM = 4096
MOST = ROOM // 2 - layout.RECORD_HEAD - layout.UNIT
"""The bytes of data that fit behind a short header."""


class Record(NamedTuple):
    """The content of a record."""

    kind: int
    turn: int
    number: int
    header: bytes
    data: bytes


class Pair:
    """The ends of the pipes of a group."""

    def __init__(self, forms: Sequence[str], size: int = 2, spins: int = 4) -> None:
        nbytes = layout.pipes_bytes(size, ROOM)
        file, self.segment = segment.make(nbytes + layout.PAGE, TOKEN)
        os.close(file)
        self.memory = memoryview(self.segment.memory).cast("B")[layout.PAGE :]
        place = self.segment.address + layout.PAGE, nbytes, size
        classes = [pipes.Pipes if form == "python" else compiled.Pipes for form in forms]  # type: ignore[union-attr]
        self.ends: list[Any] = [
            classes[min(rank, 1)](*place, rank, ROOM, spins, self.segment.memory) for rank in range(size)
        ]

    def push(self, source: int, target: int, header: bytes, data: bytes = b"", **more: Any) -> int:
        held = bytearray(data) or bytearray(1)
        kind, number, is_message = more.get("kind", 1), more.get("number", 0), more.get("is_message", True)
        address = addressof(c_char.from_buffer(held))
        return int(self.ends[source].push(target, kind, is_message, number, header, address, len(data)))

    def pop(self, reader: int, source: int) -> Record | None:
        found = self.ends[reader].head(source)
        if found is None:
            return None
        kind, turn, number, header, start, nbytes = found
        record = Record(kind, turn, number, header, bytes(self.memory[start : start + nbytes]))
        self.ends[reader].drop(source)
        return record


@pytest.fixture
def pair(forms: tuple[str, str]) -> Pair:
    return Pair(forms)


def test_record_arrives_whole(pair: Pair) -> None:
    assert pair.push(0, 1, b"header", b"data", kind=3, number=7) == PUSHED
    assert pair.pop(1, 0) == Record(3, 1, 7, b"header", b"data")
    assert pair.pop(1, 0) is None


def test_long_stream_arrives_in_order(forms: tuple[str, str]) -> None:
    ranks, random_, sent = Pair(forms, 3), random.Random(1), {rank: deque[Record]() for rank in (0, 2)}
    turns, most = dict.fromkeys(sent, 0), 600
    for _ in range(3000):
        source = random_.choice([0, 2])
        turns[source] += 1
        header, data = random_.randbytes(random_.randint(0, 200)), random_.randbytes(random_.randint(0, most))
        while ranks.push(source, 1, header, data, is_message=False) != PUSHED:
            assert ranks.pop(1, source) == sent[source].popleft()
        sent[source].append(Record(1, 0, 0, header, data))
    for source, left in sent.items():
        assert [ranks.pop(1, source) for _ in left] == list(left)
        assert ranks.pop(1, source) is None


def test_each_pair_has_its_own_pipe(forms: tuple[str, str]) -> None:
    ranks = Pair(forms, 3)
    for source in range(3):
        for target in range(3):
            ranks.push(source, target, b"%d%d" % (source, target))
    for source in range(3):
        for target in range(3):
            found = ranks.pop(target, source)
            assert found is not None
            assert found.header == b"%d%d" % (source, target)


def test_message_without_room_gets_its_turn(pair: Pair) -> None:
    assert pair.push(0, 1, b"", bytes(MOST)) == PUSHED
    assert pair.push(0, 1, b"", bytes(MOST + 200)) == FULL + 2
    assert pair.push(0, 1, b"", bytes(MOST)) == PUSHED
    assert pair.push(0, 1, b"", bytes(100)) == FULL + 4
    assert [pair.pop(1, 0).turn for _ in range(2)] == [1, 3]  # type: ignore[union-attr]
    assert pair.push(0, 1, b"") == PUSHED


def test_answer_without_room_has_no_turn(pair: Pair) -> None:
    while pair.push(0, 1, b"", bytes(MOST), is_message=False) == PUSHED:
        pass
    assert pair.push(0, 1, b"", bytes(MOST), is_message=False) == FULL
    assert pair.push(0, 1, b"", bytes(MOST)) == FULL + 1


def test_turns_are_counted_by_the_reader(pair: Pair) -> None:
    assert pair.ends[1].next(0, 0) == 1
    assert pair.ends[1].next(0, 1) == 2
    assert pair.ends[1].next(0, 0) == 2
    assert pair.ends[0].next(1, 0) == 1


def test_look_sees_any_ranks_record(pair: Pair) -> None:
    assert [end.look(waits) for end in pair.ends for waits in (False, True)] == [False] * 4
    pair.push(0, 1, b"")
    assert [end.look(waits) for end in pair.ends for waits in (False, True)] == [False, False, True, True]


def test_sleeping_reader_is_woken_once(pair: Pair) -> None:
    pair.ends[1].rest(True)
    assert [pair.push(0, 1, b"") for _ in range(2)] == [ASLEEP, PUSHED]
    assert pair.push(1, 0, b"") == PUSHED
    pair.ends[1].rest(True)
    pair.ends[1].rest(False)
    assert pair.push(0, 1, b"") == PUSHED


def test_unknown_rank_is_an_index_error(pair: Pair) -> None:
    end = pair.ends[0]
    for call in (lambda: pair.push(0, 2, b""), lambda: end.head(2), lambda: end.drop(2), lambda: end.next(2, 0)):
        with pytest.raises(IndexError, match="no such rank"):
            call()


def test_memory_must_hold_the_pipes(forms: tuple[str, str]) -> None:
    pair = Pair(forms)
    make, owner = type(pair.ends[0]), pair.segment.memory
    for nbytes, rank, room in ((layout.pipes_bytes(2, ROOM) - 1, 0, ROOM), (1 << 20, 2, ROOM), (1 << 20, 0, 100)):
        with pytest.raises(ValueError, match="too small"):
            make(pair.segment.address, nbytes, 2, rank, room, 4, owner)


@pytest.mark.parametrize("sender", ["compiled", "python"])
def test_core_takes_a_message_with_a_known_header(sender: str) -> None:
    if reason := missing((sender, "compiled")):
        pytest.skip(reason)
    pair = Pair((sender, "compiled"))
    target = bytearray(4)
    address = addressof(c_char.from_buffer(target))
    ring = Group(("compiled", "compiled"), 2).rings[1]
    pair.push(0, 1, b"two", b"data", number=9)
    pair.push(0, 1, b"one", b"more")
    assert pair.ends[1].take(0, (b"one",), address, 4, ring, False) is None  # another header
    assert pair.ends[1].take(0, (b"one", b"two"), address, 3, ring, False) is None  # another length
    assert pair.ends[1].take(0, (b"one", b"two"), address, 4, ring, False) == 9
    assert bytes(target) == b"data"
    pair.ends[1].next(0, 5)
    assert pair.ends[1].take(0, (b"one",), address, 4, ring, False) is None  # another turn


@pytest.mark.parametrize("sender", ["compiled", "python"])
def test_core_reads_offered_data_unless_the_offer_was_withdrawn(sender: str) -> None:
    if reason := missing((sender, "compiled")):
        pytest.skip(reason)
    pair, ring = Pair((sender, "compiled")), Group(("compiled", "compiled"), 2).rings[1]
    data, target = bytearray(b"larger data"), bytearray(11)
    address = addressof(c_char.from_buffer(target))
    offers, pipe, nobody = Offers(), pair.ends[1], cast(Request, None)
    number = offers.add(1, memoryview(data), nobody)
    place = bytes(offers.place(number, addressof(c_char.from_buffer(data))))
    pair.push(0, 1, b"one", place, kind=READABLE, number=number)
    assert pipe.take(0, (b"one",), address, 11, ring, False) is None  # no memory may be read
    assert pipe.take(0, (b"one",), address, len(place), ring, False) is None
    ring.read_far(array("q", [os.getpid()] * 2).tobytes())
    assert pipe.take(0, (b"two",), address, 11, ring, False) is None  # another header
    assert bytes(target) == bytes(11)
    assert pipe.take(0, (b"one",), address, 11, ring, False) == number
    assert bytes(target) == data
    pair.push(0, 1, b"one", place, kind=READABLE, number=number + 1)  # as if a later offer had taken its place
    assert pipe.take(0, (b"one",), address, 11, ring, False) is None
    with pytest.raises(TypeError, match="Ring"):
        pipe.take(0, (b"one",), address, 11, None, False)


def test_messages_pass_between_processes(forms: tuple[str, str]) -> None:
    pair, count = Pair(forms, spins=100), 5000

    def send() -> int:
        wakes = 0
        for number in range(count):
            while (outcome := pair.push(0, 1, b"h%d" % number, bytes(number % 700), is_message=False)) >= FULL:
                os.sched_yield()
            wakes += outcome == ASLEEP
        return wakes

    with Child(send) as sender:
        for number in range(count):
            while (record := pair.pop(1, 0)) is None:
                pair.ends[1].look(True)
            assert record == Record(1, 0, 0, b"h%d" % number, bytes(number % 700))
        assert sender.result() == 0


@pytest.mark.parametrize("size", [1, 2, 8, 16, 64, 65, 1000])
def test_pipes_of_a_group_are_bounded(size: int) -> None:
    room = group.pipe_room(size)
    assert room % layout.PAGE == 0
    assert layout.pipes_bytes(size, room) <= (1 << 24) + (size**2 + size) * 512 + layout.PAGE
    assert (room > 0) == (size <= 64)
