"""Long streams of calls between processes that pause at random: no value is wrong, and no rank waits in vain."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from collshim.transports.shared_memory.layout import DONE, POSTED, REDUCED, RELEASED
from tests.shared_memory.children import run_all
from tests.shared_memory.rings import DATA_ROOM, SLOTS, WRAP, Group, Slot, missing, post

pytestmark = pytest.mark.processes

CALLS, START = 20_000, WRAP - 5_000
SECONDS = 240.0
_BYTES = random.Random(0).randbytes(4 * DATA_ROOM)


def sent(rank: int, number: int) -> Slot:
    """Return what a rank sends in a call: other bytes, of another length, than in the calls before and after."""
    drawn = random.Random(f"{rank} {number}")
    start, nbytes = drawn.randrange(3 * DATA_ROOM), drawn.randrange(200)
    return Slot(struct.pack("<II", rank, number) * drawn.randrange(1, 8), number % 3, _BYTES[start : start + nbytes])


def pause(drawn: random.Random) -> None:
    """Pause in one of a hundred calls, so that ranks overtake each other and the others fall asleep."""
    if drawn.random() < 0.01:
        time.sleep(drawn.random() * 1e-3)


def stream(ranks: Group, rank: int) -> int:
    """Post and read all calls of a rank, which posts as far ahead as it pleases; return how many were right."""
    own, drawn = ranks.rings[rank], random.Random(rank)
    posted = read = 0
    while read < CALLS:
        pause(drawn)
        wants = posted < CALLS and (posted == read or (posted - read < SLOTS and drawn.random() < 0.5))
        if wants:
            posted += try_post(own, rank, (START + posted) % WRAP)
        if posted > read and not (wants and drawn.random() < 0.5):
            number = (START + read) % WRAP
            assert own.wait(POSTED, number, SECONDS, True)
            assert [ranks.slot(number, other, rank) for other in range(ranks.size)] == [
                sent(other, number) for other in range(ranks.size)
            ]
            own.advance(RELEASED, (number + 1) % WRAP)
            read += 1
    return read


def try_post(own: Any, rank: int, number: int) -> bool:
    """Post a call, after a wait for room; return whether it was posted."""
    slot = sent(rank, number)
    found = post(own, slot.header, slot.data, slot.kind)
    if found is None:
        assert own.wait(RELEASED, (number - SLOTS) % WRAP, SECONDS, True)
        found = post(own, slot.header, slot.data, slot.kind)
    assert found == number
    return True


def sums(ranks: Group, rank: int) -> int:
    """Sum vectors in the compiled core; return how many sums were right."""
    own, drawn, right = ranks.rings[rank], random.Random(rank), 0
    for step in range(CALLS):
        pause(drawn)
        numbers = torch.tensor([step * ranks.size + rank, step], dtype=torch.int64)
        number = post(own, b"a sum", numbers)
        assert number is not None, "a rank that has finished all calls has no room"
        done = own.finish(number, (b"a sum",) * ranks.size, REDUCED, ord("l"), 0, 16, numbers.data_ptr(), SECONDS)
        total = ranks.size * ranks.size * step + ranks.size * (ranks.size - 1) // 2
        right += done == DONE and numbers.tolist() == [total, ranks.size * step]
    return right


def guarded(ranks: Group, rank: int, run: Callable[[Group, int], int]) -> int:
    """Run a rank; if it fails, the others need not wait for it."""
    try:
        return run(ranks, rank)
    except BaseException:
        ranks.rings[rank].end()
        raise


@pytest.mark.parametrize("spins", [1, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [2, 4])
def test_stream_of_calls_has_no_wrong_value(forms: tuple[str, str], size: int, spins: int) -> None:
    ranks = Group(forms, size, start=START, spins=spins)
    found = run_all([partial(guarded, ranks, rank, stream) for rank in range(size)], SECONDS)
    assert found == [CALLS] * size


@pytest.mark.parametrize("spins", [1, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [2, 4])
def test_stream_of_sums_has_no_wrong_value(size: int, spins: int) -> None:
    if reason := missing(["compiled"]):
        pytest.skip(reason)
    ranks = Group(("compiled", "compiled"), size, start=START, spins=spins)
    found = run_all([partial(guarded, ranks, rank, sums) for rank in range(size)], SECONDS)
    assert found == [CALLS] * size
