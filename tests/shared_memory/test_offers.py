"""Large messages, which the compiled core offers and takes: each send ends once its receive has the data."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from collshim.torch.distributed.distributed_c10d import _get_default_group
from collshim.transports.processes import messages_in_line
from tests.engine.worlds import attempt, on_ranks, world
from tests.shared_memory.repeats import NEEDS_CORE, run
from tests.shared_memory.test_repeated_messages import message

pytestmark = [pytest.mark.processes, NEEDS_CORE]

LENGTHS = {"inline": 2000, "read": 50_000}


def to_a_late_receiver(length: int) -> list[tuple[float, bool]]:
    """Receive large data a while after it was sent; return the values, and whether each send waited for its receive."""
    found = list[tuple[float, bool]]()
    for number in range(12):
        x = torch.full((length,), float(number))
        is_late = number > 6
        if is_late and dist.get_rank():
            time.sleep(0.05)
        began = time.monotonic()
        message(x)
        found.append((x[-1].item(), not is_late or time.monotonic() - began > 0.02))
    return found


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_large_send_waits_for_its_receive(length: int) -> None:
    first, second = run(partial(to_a_late_receiver, length))
    assert first == [(number, True) for number in range(12)]
    assert [value for value, _ in second] == list(range(12))


def to_a_late_receiver_over_the_backend(length: int) -> list[float]:
    torch.distributed.init_process_group("collshim")
    found, rank = list[float](), torch.distributed.get_rank()
    for number in range(12):
        x = torch.full((length,), float(number))
        if number > 6 and rank:
            time.sleep(0.05)
        torch.distributed.recv(x, 0) if rank else torch.distributed.send(x, 1)
        found.append(x[-1].item())
    return found


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_large_send_of_torch_waits_over_the_backend(length: int) -> None:
    assert on_ranks(to_a_late_receiver_over_the_backend, 2, "processes", length)[1] == [*range(12)]


def behind_another_offer(length: int) -> bool:
    """Send once more while the receiver has only the message before; return whether the send waited for its receive."""
    x, waited = torch.ones(length), True
    for number in range(10):
        if dist.get_rank() == 0:
            earlier = dist.isend(x, 1)
            began = time.monotonic()
            dist.send(x, 1)
            waited = waited and (number < 7 or time.monotonic() - began > 0.02)
            assert earlier is not None
            earlier.wait()
        else:
            dist.recv(x, 0)
            time.sleep(0.05 if number > 6 else 0)
            dist.recv(x, 0)
        dist.barrier()
    return waited


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_answer_to_another_offer_ends_no_send(length: int) -> None:
    assert run(partial(behind_another_offer, length))[0]


class Interrupt(BaseException):
    """What a signal's handler raises."""


def interrupted(length: int) -> list[float]:
    """Interrupt the sixth of ten sends before its request is known; return what this rank received."""
    module: Any = messages_in_line
    found, kept = list[float](), module.limited

    def raises(*given: Any) -> Any:
        module.limited = kept
        raise Interrupt

    for number in range(10):
        x = torch.full((length,), float(number))
        if number == 5 and dist.get_rank() == 0:
            module.limited = raises
            with pytest.raises(Interrupt):
                message(x)
            continue
        if number == 5:
            time.sleep(0.1)
        message(x)
        found.append(x[-1].item())
    return found


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_interrupted_send_is_received_all_the_same(length: int) -> None:
    assert run(partial(interrupted, length))[1] == list(range(10))


def to_each_other(length: int) -> str:
    x, rank = torch.ones(length), dist.get_rank()
    for _ in range(6):
        message(x)
        dist.recv(x, 1) if rank == 0 else dist.send(x, 0)
    world().timeout = _get_default_group().deadline = 0.3
    return attempt(lambda: dist.send(x, 1 - rank)).text


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_large_sends_to_each_other_are_a_deadlock(length: int) -> None:
    for rank, text in enumerate(run(partial(to_each_other, length))):
        assert f"rank {1 - rank}" in text, text


def behind_full_pipes(length: int) -> list[float]:
    """Exchange large messages behind small ones that fill the pipes, in both directions."""
    small, x, found, rank = torch.zeros(1000), torch.zeros(length), list[float](), dist.get_rank()
    for number in range(9):
        many = 100 if number > 6 else 1
        for _ in range(many):
            dist.send(small, 1 - rank, tag=1)
        time.sleep(0.05 if many > 1 else 0)
        x.fill_(number)
        message(x)
        found.append(x[-1].item())
        for _ in range(many):
            dist.recv(small, 1 - rank, tag=1)
    return found


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_large_messages_arrive_behind_full_pipes(length: int) -> None:
    assert run(partial(behind_full_pipes, length)) == [list(range(9))] * 2
