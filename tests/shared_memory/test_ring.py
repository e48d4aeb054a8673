"""The ring of slots without waits: posts, room, counters that wrap around; all forms have one layout."""

from __future__ import annotations

import gc
import random
import weakref
from array import array
from ctypes import addressof, c_char

import pytest

from collshim.transports.shared_memory import group, layout
from collshim.transports.shared_memory.layout import ABSENT, FAR, INLINE, POSTED, RELEASED, STAGE
from tests.shared_memory.rings import DATA_ROOM, HEADER_ROOM, SLOTS, WRAP, Group, Slot, missing, post, ring_class

HALF = WRAP // 2


@pytest.fixture
def pair(forms: tuple[str, str]) -> Group:
    return Group(forms, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_posted_calls_are_seen_whole_by_all(forms: tuple[str, str], size: int) -> None:
    ranks, random_ = Group(forms, size), random.Random(size)
    for number in range(3 * SLOTS):
        lengths = [(random_.randint(0, HEADER_ROOM), random_.randint(0, DATA_ROOM)) for _ in range(size)]
        sent = [Slot(random_.randbytes(one), random_.randint(0, 2), random_.randbytes(two)) for one, two in lengths]
        for own, slot in zip(ranks.rings, sent, strict=True):
            assert post(own, slot.header, slot.data, slot.kind) == number
        for reader in range(size):
            assert [ranks.slot(number, rank, reader) for rank in range(size)] == sent
        ranks.release_all(number)


@pytest.mark.parametrize("kind", [INLINE, ABSENT, FAR])
def test_slot_keeps_its_kind(pair: Group, kind: int) -> None:
    post(pair.rings[0], b"", b"", kind)
    assert [pair.slot(0, 0, reader).kind for reader in range(2)] == [kind, kind]


def test_slot_keeps_the_time_of_its_post(pair: Group) -> None:
    for own in pair.rings:
        post(own, b"")
    first, second = (own.slot(0, rank)[-1] for rank, own in enumerate(pair.rings))
    assert 0 < first <= second


def test_data_lies_behind_the_room_for_headers(pair: Group) -> None:
    post(pair.rings[1], b"header", b"data")
    offsets = {own.slot(0, 1)[2] for own in pair.rings}
    stride = layout.SLOT_HEAD + HEADER_ROOM + DATA_ROOM
    assert offsets == {layout.slots_start(2) + SLOTS * stride + layout.SLOT_HEAD + HEADER_ROOM}


def test_each_rank_sees_all_counters(pair: Group) -> None:
    post(pair.rings[0], b"")
    pair.rings[1].advance(RELEASED, 7)
    pair.rings[1].advance(STAGE, 9)
    for own in pair.rings:
        assert [own.counter(which, rank) for which in (POSTED, RELEASED, STAGE) for rank in (0, 1)] == [
            *(1, 0, 0),
            *(7, 0, 9),
        ]


def test_no_room_until_all_have_released(pair: Group) -> None:
    first, second = pair.rings
    assert [post(first, b"") for _ in range(SLOTS + 1)] == [*range(SLOTS), None]
    for _ in range(SLOTS):
        post(second, b"")
    first.advance(RELEASED, 2)
    assert post(first, b"") is None
    second.advance(RELEASED, 1)
    assert [post(first, b""), post(first, b"")] == [SLOTS, None]


def test_refused_post_writes_nothing(pair: Group) -> None:
    for number in range(SLOTS):
        post(pair.rings[0], b"%d" % number, b"data")
    before = bytes(pair.segment.memory)
    assert post(pair.rings[0], b"another", b"other data") is None
    assert bytes(pair.segment.memory) == before


def test_call_alone_is_refused_while_another_is_outstanding(pair: Group) -> None:
    first = pair.rings[0]
    assert post(first, b"", is_alone=True) == 0
    assert post(first, b"", is_alone=True) is None
    assert post(first, b"") == 1
    first.advance(RELEASED, 1)
    assert post(first, b"", is_alone=True) is None
    first.advance(RELEASED, 2)
    assert post(first, b"", is_alone=True) == 2


def test_calls_alone_need_no_release_of_others(pair: Group) -> None:
    first = pair.rings[0]
    for number in range(SLOTS):
        assert post(first, b"", is_alone=True) == number
        first.advance(RELEASED, number + 1)
    assert post(first, b"", is_alone=True) is None


def test_counters_wrap_around(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 3, start=WRAP - 2 * SLOTS)
    numbers = []
    for step in range(4 * SLOTS):
        numbers.append(ranks.post_all(b"%d" % step))
        assert [own.wait(POSTED, numbers[-1], 0.0, True) for own in ranks.rings] == [True] * 3
        assert not any(own.wait(POSTED, (numbers[-1] + 1) % WRAP, 0.0, True) for own in ranks.rings)
        assert {ranks.slot(numbers[-1], rank, reader).header for rank in range(3) for reader in range(3)} == {
            b"%d" % step
        }
        ranks.release_all(numbers[-1])
    assert numbers == [(WRAP - 2 * SLOTS + step) % WRAP for step in range(4 * SLOTS)]


@pytest.mark.parametrize("start", [WRAP - SLOTS // 2, HALF - SLOTS // 2])
def test_room_is_counted_across_the_wrap(forms: tuple[str, str], start: int) -> None:
    first, second = (ranks := Group(forms, 2, start=start)).rings
    expected = [(start + step) % WRAP for step in range(SLOTS)]
    assert [post(first, b"") for _ in range(SLOTS + 1)] == [*expected, None]
    for _ in expected:
        post(second, b"")
    ranks.release_all(expected[-1])
    assert post(first, b"") == (start + SLOTS) % WRAP


@pytest.mark.parametrize("start", [HALF - SLOTS // 2, WRAP - SLOTS // 2])
def test_stage_is_not_passed_however_many_calls_had_none(forms: tuple[str, str], start: int) -> None:
    ranks = Group(forms, 2, start=start - 1)
    ranks.release_all(ranks.post_all())
    for _ in range(2 * SLOTS):
        number = ranks.post_all()
        assert [own.wait(STAGE, number, 0.0, True) for own in ranks.rings] == [False, False]
        ranks.release_all(number)


def test_stage_is_passed_with_a_call(pair: Group) -> None:
    number = pair.post_all()
    pair.rings[0].advance(STAGE, number + 1)
    assert [own.wait(STAGE, number, 0.0, True) for own in pair.rings] == [False, False]
    pair.rings[1].advance(STAGE, number + 1)
    assert [own.wait(STAGE, number, 0.0, True) for own in pair.rings] == [True, True]
    pair.release_all(number)
    assert pair.counters(STAGE) == [number + 1] * 2


def test_number_of_slots_divides_the_wrap() -> None:
    assert WRAP % group.SLOTS == 0  # else the number after the last would not have the slot after its slot


def test_ring_goes_on_from_its_counters(pair: Group) -> None:
    pair.post_all(b"one")
    assert [post(pair.make_ring(rank), b"two") for rank in range(2)] == [1, 1]


@pytest.mark.parametrize(("header", "data"), [(HEADER_ROOM + 1, 0), (0, DATA_ROOM + 1)])
def test_too_large_a_header_or_data_is_refused(pair: Group, header: int, data: int) -> None:
    for own in pair.rings:
        with pytest.raises(ValueError, match="larger than its room"):
            post(own, b"h" * header, b"d" * data)
    assert pair.counters(POSTED) == [0, 0]


def test_full_room_is_used(pair: Group) -> None:
    slot = Slot(b"h" * HEADER_ROOM, INLINE, b"d" * DATA_ROOM)
    for rank, own in enumerate(pair.rings):
        post(own, slot.header, slot.data)
        assert pair.slot(0, rank, 1 - rank) == slot


@pytest.mark.parametrize("form", ["compiled", "python"])
def test_too_small_a_segment_is_refused(form: str) -> None:
    if reason := missing([form]):
        pytest.skip(reason)
    ranks = Group((form, form), 2)
    nbytes = len(ranks.segment.memory)
    shape = SLOTS, HEADER_ROOM, DATA_ROOM, 1, ranks.segment.memory
    ring_class(form)(ranks.segment.address, nbytes, 2, 1, *shape)
    with pytest.raises(ValueError, match="too small"):
        ring_class(form)(ranks.segment.address, nbytes - 1, 2, 1, *shape)


def test_rank_outside_of_the_group_is_refused(pair: Group) -> None:
    with pytest.raises(ValueError, match="too small"):
        pair.make_ring(2)
    for own in pair.rings:
        with pytest.raises(IndexError):
            own.counter(POSTED, 2)
        with pytest.raises(IndexError):
            own.slot(0, 2)


@pytest.mark.parametrize("rank", [0, 1])
def test_end_is_seen_by_all(pair: Group, rank: int) -> None:
    assert [own.has_ended() for own in pair.rings] == [False, False]
    pair.rings[rank].end()
    assert [own.has_ended() for own in pair.rings] == [True, True]


def test_rings_keep_their_memory(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 2)
    rings, memory = ranks.rings, weakref.ref(ranks.segment.memory)
    del ranks
    gc.collect()
    assert memory() is not None
    assert [post(own, b"header", b"data") for own in rings] == [0, 0]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [0, 1, DATA_ROOM // 3])
def test_equal_parts_are_posted_from_their_addresses(forms: tuple[str, str], size: int, length: int) -> None:
    ranks = Group(forms, size)
    for rank, own in enumerate(ranks.rings):
        parts = [bytearray([16 * rank + part] * length) for part in range(size)]
        words = array("Q", [addressof(c_char.from_buffer(part)) if part else 0 for part in parts])
        assert own.post(b"header", words.tobytes(), size * length, INLINE, False) == 0
        for reader in range(size):
            assert ranks.slot(0, rank, reader) == Slot(b"header", INLINE, b"".join(parts))


def test_post_of_too_few_addresses_is_refused(pair: Group) -> None:
    for own in pair.rings:
        with pytest.raises(ValueError, match="not one address for each rank"):
            own.post(b"", bytes(8), 8, INLINE, False)
    assert [own.counter(POSTED, rank) for rank, own in enumerate(pair.rings)] == [0, 0]
