"""Messages that the compiled core repeats whole: for which it does, and that nothing else changes."""

from __future__ import annotations

import gc
import time
import warnings
import weakref
from functools import partial
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from collshim.torch.distributed.c10d.hooked import may_have_hooks
from collshim.torch.distributed.distributed_c10d import _get_default_group
from tests.engine.call_counts import count
from tests.engine.worlds import attempt, on_ranks, world
from tests.robustness.scripts import await_ends, ranks
from tests.shared_memory.repeats import FEW, NEEDS_CORE, run

pytestmark = [pytest.mark.processes, NEEDS_CORE]

ANSWER = torch.zeros(1)


def message(x: Any, tag: int = 0) -> None:
    """Send from rank 0 to rank 1."""
    dist.send(x, 1, tag=tag) if dist.get_rank() == 0 else dist.recv(x, 0, tag=tag)


def calls_of(x: Any, tag: int = 0) -> int:
    """Count the Python calls of a message, the fewest of many: of some, the receiver has to sleep."""
    counts = list[int]()
    for _ in range(30):
        counts.append(count(lambda: message(x, tag)).calls)
        dist.recv(ANSWER, 1) if dist.get_rank() == 0 else dist.send(ANSWER, 0)
    return min(counts)


def kinds_of_messages() -> list[int]:
    small, large, far = torch.ones(4), torch.ones(2000), torch.ones(50_000)
    strided, double = torch.ones(8)[::2], torch.ones(4, dtype=torch.float64)
    return [calls_of(small, 3), *map(calls_of, (small, double, large, far, strided))]


def test_dense_messages_are_repeated_whole() -> None:
    for *dense, strided in run(kinds_of_messages):
        assert max(dense) <= FEW < strided, (dense, strided)


def exchanged(length: int) -> list[tuple[float, ...]]:
    """Exchange messages of this length; of each round, two are received, in turn from any rank too."""
    found, rank = list[tuple[float, ...]](), dist.get_rank()
    for number in range(12):
        sources = [None if number % 3 == 2 else 1 - rank] * 2
        targets = [torch.zeros(length) for _ in sources]
        receive = [partial(dist.irecv, out, source) for out, source in zip(targets, sources, strict=True)]
        early = [post() for post in receive] if number % 2 else []
        sends = [dist.isend(torch.full((length,), 10.0 * number + part + rank / 2), 1 - rank) for part in range(2)]
        receives = early or [post() for post in receive]
        for work in (*sends, *reversed(receives)) if number % 4 < 2 else (*receives, *sends):
            assert work is not None
            work.wait()
        found.append(tuple(float(out.sum()) / length for out in targets))
    return found


@pytest.mark.parametrize("length", [1, 1024, 1025, 50_000])
def test_messages_that_are_waited_for_later_arrive_in_order(length: int) -> None:
    halves = run(partial(exchanged, length))
    for rank, found in enumerate(halves):
        assert found == [(10 * number + (1 - rank) / 2, 10 * number + 1 + (1 - rank) / 2) for number in range(12)]


def calls_of_a_wait(length: int) -> int:
    """Count the Python calls of the wait for a receive, the fewest of many."""
    counts, x = list[int](), torch.ones(length)
    for _ in range(30):
        if dist.get_rank() == 0:
            dist.send(x, 1)
            dist.recv(ANSWER, 1)
        else:
            work = dist.irecv(x, 0)
            assert work is not None
            time.sleep(0.001)
            counts.append(count(work.wait).calls)
            dist.send(ANSWER, 0)
    return min(counts, default=0)


@pytest.mark.parametrize("length", [1, 50_000])
def test_wait_takes_a_message_in_the_core(length: int) -> None:
    assert run(partial(calls_of_a_wait, length))[1] <= 25


def values_in_turns() -> list[float]:
    """Receive messages of two shapes and two tags, in the order of their tags."""
    found = list[float]()
    for number in range(12):
        x, y = torch.full((3,), float(number)), torch.full((5,), number + 0.5)
        if dist.get_rank() == 0:
            message(x, tag=1)
            message(y, tag=2)
        else:
            message(y, tag=2)
            message(x, tag=1)
            found += [x[2].item(), y[4].item()]
    return found


def test_tags_choose_among_repeated_messages() -> None:
    _, second = run(values_in_turns)
    assert second == [value + half for value in range(12) for half in (0, 0.5)]


def other_shape() -> str:
    for _ in range(8):
        message(torch.ones(4))
    return attempt(lambda: message(torch.ones(4 + dist.get_rank()))).text


def test_message_of_another_shape_is_refused_with_both_lines() -> None:
    _, text = run(other_shape)
    assert "shape (4,)" in text
    assert "shape (5,)" in text
    line = message.__code__.co_firstlineno + 2
    assert text.count(f"test_repeated_messages.py:{line}") == 2, text


def behind_a_posted_receive() -> list[float]:
    x, first, second = torch.ones(1), torch.zeros(1), torch.zeros(1)
    for _ in range(6):
        message(x)
    dist.barrier()
    if dist.get_rank() == 0:
        for value in (2.0, 3.0):
            dist.send(torch.full((1,), value), 1)
        return []
    work = dist.irecv(first, 0)
    dist.recv(second, 0)
    assert work is not None
    work.wait()
    return [first.item(), second.item()]


def test_receive_comes_behind_those_posted_before() -> None:
    assert run(behind_a_posted_receive)[1] == [2.0, 3.0]


def more_than_a_pipe() -> list[float]:
    """Send more than the memory between two ranks holds, before the first is received."""
    x, found = torch.zeros(1000), list[float]()
    for _ in range(6):
        message(x)
    if dist.get_rank():
        time.sleep(0.3)
    for number in range(2000):
        x = torch.full((1000,), float(number))
        message(x)
        found.append(x[-1].item())
    return found


def test_messages_beyond_a_full_pipe_keep_their_order() -> None:
    assert run(more_than_a_pipe)[1] == list(range(2000))


def to_a_sleeper() -> list[float]:
    """Send to a rank that sleeps in its receive, within the time in which a sender asks nobody."""
    x, found = torch.zeros(1), list[float]()
    for number in range(12):
        x.fill_(number)
        if dist.get_rank() == 0 and number > 6:
            for _ in range(5):  # it stays known that the receiver is there
                time.sleep(0.02)
                dist.send(x, 1, tag=1)
        message(x)
        if number > 6 and dist.get_rank():
            for _ in range(5):
                dist.recv(torch.zeros(1), 0, tag=1)
        found.append(x.item())
    return found


def test_sleeping_receiver_is_woken() -> None:
    assert run(to_a_sleeper)[1] == list(range(12))


LEAVES = """
import os, time, torch, collshim.torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1)
for _ in range(6):
    dist.recv(x, 0) if dist.get_rank() else dist.send(x, 1)
if dist.get_rank():
    os._exit(0)
try:
    for _ in range(300):
        dist.send(x, 1)
        time.sleep(0.01)
except RuntimeError as failure:
    print(failure)
os._exit(0)
"""


def test_sender_is_told_that_its_receiver_has_ended() -> None:
    with ranks(LEAVES, 2) as started:
        sender, _ = await_ends(started)
    assert "rank 1" in sender.out, sender


def after_a_failure() -> str:
    x = torch.ones(1)
    for _ in range(6):
        message(x)
    comm = world()
    comm.timeout = _get_default_group().deadline = 0.2
    if dist.get_rank() == 0:
        attempt(lambda: dist.all_reduce(x))
        return attempt(lambda: dist.send(x, 1)).text
    time.sleep(1.5)
    return "late"


def test_failed_group_sends_nothing() -> None:
    assert run(after_a_failure)[0] != ""


def drops_a_group() -> bool:
    group: Any = dist.new_group()
    x = torch.ones(2)
    for _ in range(6):
        dist.send(x, 1, group=group) if dist.get_rank() == 0 else dist.recv(x, 0, group=group)
    kept = weakref.ref(group.communicator)
    dist.barrier()
    dist.destroy_process_group(group)
    del group
    gc.collect()
    return kept() is None


def test_repeated_messages_do_not_keep_their_group() -> None:
    assert run(drops_a_group) == [True, True]


def peers_of_other_types() -> tuple[bool, bool]:
    x = torch.ones(1)
    for _ in range(6):
        message(x)
    wrong: list[Any] = [1.0, True]
    first, second = (attempt(lambda: dist.send(x, peer)).raised != () for peer in wrong)  # noqa: B023
    return first, second


def test_rank_that_is_no_int_is_looked_at_again() -> None:
    assert run(peers_of_other_types)[0] == on_ranks(_unrepeated, 2, "processes")[0]


def _unrepeated() -> tuple[bool, bool]:
    dist.init_process_group("gloo")
    wrong: list[Any] = [1.0, True]
    first, second = (attempt(lambda: dist.send(torch.ones(1), peer)).raised != () for peer in wrong)  # noqa: B023
    return first, second


def over_the_backend() -> tuple[int, list[float], list[object]]:
    """Count the fewest Python calls of a message of torch.distributed itself, and receive values in three ways."""
    torch.distributed.init_process_group("collshim")
    x, found, works, counts = torch.zeros(2), list[float](), list[object](), list[int]()
    sends = torch.distributed.get_rank() == 0
    for number in range(30):
        x.fill_(number if sends else -1)
        pass_on = torch.distributed.send if sends else torch.distributed.recv
        counts.append(count(lambda: pass_on(x, int(sends))).calls)  # noqa: B023
        found.append(x[1].item())
        torch.distributed.recv(ANSWER, 1) if sends else torch.distributed.send(ANSWER, 0)
    for number in range(4):
        x.fill_(number if sends else -1)
        work = torch.distributed.isend(x, 1) if sends else torch.distributed.irecv(x, 0)
        assert work is not None
        works += [work.wait(), work.is_completed(), work.result()[0] is x]
        found.append(x[1].item())
    return min(counts), found, works


def test_messages_of_torch_are_repeated_over_the_backend() -> None:
    for counted, found, works in on_ranks(over_the_backend, 2, "processes"):
        assert counted <= (FEW if not may_have_hooks() else 4 * FEW)
        assert found == [*range(30), *range(4)]
        assert works == [True] * 12


def changed_before_the_wait() -> list[str]:
    """Change a large tensor, and leave a work of one, between ``isend`` and the wait; return the warnings."""
    x = torch.ones(5000)
    for _ in range(4):
        message(x)
    if dist.get_rank():
        dist.recv(x, 0)
        return []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work = dist.isend(x, 1)
        x.add_(1)
        assert work is not None
        work.wait()
    return [str(warning.message) for warning in caught]


def test_change_of_a_large_tensor_before_the_wait_is_told() -> None:
    first, _ = run(changed_before_the_wait)
    assert any("changed" in text for text in first), first
