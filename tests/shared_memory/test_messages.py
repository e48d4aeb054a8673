"""send and recv between processes that share memory: order, full pipes, sleeping and busy receivers."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim
import collshim.torch.distributed as shim
from collshim.transports.processes.mailbox import Mailbox
from tests.engine.worlds import on_ranks, world

pytestmark = pytest.mark.processes

EAGER = 1024
"""float32 elements of the largest message that its sender need not wait for."""

MANY = 300
"""More such messages than a pipe holds."""


def _numbered(number: int, count: int = EAGER) -> Tensor:
    return torch.full((count,), float(number))


def _counting(method: str, calls: list[int]) -> None:
    """Let calls of a method of the mailboxes in this process be counted in a list."""
    own: Any = getattr(Mailbox, method)

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return own(*arguments)

    setattr(Mailbox, method, counted)


def fills_the_pipe() -> tuple[list[float], int]:
    """Return the received numbers, and how many messages of the sender came through a socket."""
    comm, held = world(), list[int]()
    _counting("hold", held)
    comm.barrier().wait()
    if comm.rank == 0:
        for number in range(MANY):
            comm.send(_numbered(number), 1).wait()
        comm.barrier().wait()
        return [], 0
    comm.barrier().wait()
    return [comm.recv(0, like=_numbered(0)).wait()[0].item() for _ in range(MANY)], len(held)


def test_messages_beyond_the_pipe_arrive_in_order() -> None:
    received, held = on_ranks(fills_the_pipe, 2, "processes", within=60)[1]
    assert received == [float(number) for number in range(MANY)]
    assert 0 < held < MANY


def fill_each_others_pipes() -> list[float]:
    comm = world()
    for number in range(MANY):
        comm.send(_numbered(number), 1 - comm.rank).wait()
    return [comm.recv(1 - comm.rank, like=_numbered(0)).wait()[0].item() for _ in range(MANY)]


def test_two_full_pipes_are_no_deadlock() -> None:
    assert on_ranks(fill_each_others_pipes, 2, "processes", within=60) == [[float(one) for one in range(MANY)]] * 2


def sleeps_until_a_message_comes() -> tuple[list[float], int]:
    """Return what was received, and how often this rank was woken."""
    comm, found, woken = world(), list[float](), list[int]()
    _counting("rest_on", woken)
    for number in range(8):
        like = _numbered(number, 4)
        if number % 2 == comm.rank:
            time.sleep(0.05)
            comm.send(like, 1 - comm.rank).wait()
        else:
            found.append(comm.recv(1 - comm.rank, like=like).wait()[0].item())
    return found, len(woken)


def test_sleeping_receiver_is_woken() -> None:
    (first, first_woken), (second, second_woken) = on_ranks(sleeps_until_a_message_comes, 2, "processes", within=40)
    assert [first, second] == [[1, 3, 5, 7], [0, 2, 4, 6]]
    assert first_woken > 0 < second_woken


def is_received_by_a_busy_rank(flag: str) -> float:
    """Return what arrives at a rank that computes, without a call, until the sender is done."""
    comm = world()
    x = _numbered(7, 50_000)
    if comm.rank == 0:
        time.sleep(0.2)
        comm.send(x, 1).wait()
        Path(flag).touch()
        return 0.0
    work = comm.recv(0, out=torch.zeros_like(x))
    limit = time.monotonic() + 20
    while not Path(flag).exists() and time.monotonic() < limit:
        time.sleep(0.001)
    assert Path(flag).exists()
    return float(work.wait()[0].item())


def test_busy_receiver_does_not_hold_up_a_large_send(tmp_path: Path) -> None:
    found = on_ranks(is_received_by_a_busy_rank, 2, "processes", str(tmp_path / "sent"), within=60)
    assert found == [0.0, 7.0]


def _drawn(seed: int, size: int) -> list[tuple[int, int, int, int]]:
    """Return source, destination, tag and length of messages, the same on all ranks."""
    random_, lengths = random.Random(seed), (0, 1, 7, EAGER, EAGER + 1, 16_384, 16_385, 70_000)
    pairs = [(one, two) for one in range(size) for two in range(size) if one != two]
    return [(*random_.choice(pairs), random_.randrange(3), random_.choice(lengths)) for _ in range(120)]


def exchange_drawn(seed: int) -> list[str]:
    """Return what is wrong about messages that are posted in an order of each rank's own."""
    comm, wrong, works = world(), list[str](), list[tuple[int, Any]]()
    plan = _drawn(seed, comm.size)
    for number, (source, target, tag, length) in enumerate(plan):
        if source == comm.rank:
            works.append((-1, comm.send(_numbered(number, length), target, tag=tag)))
        if target == comm.rank:
            works.append((number, comm.recv(source, out=torch.zeros(length), tag=tag)))
    random.Random(seed + comm.rank).shuffle(works)
    for number, work in works:
        result = work.wait()
        if number >= 0 and not torch.equal(result, _numbered(number, plan[number][3])):
            wrong.append(f"{plan[number]} as number {number}: {result[:3]}")
    return wrong


@pytest.mark.parametrize("core", ["compiled", "python"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drawn_messages_arrive(seed: int, core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLSHIM_CORE", core)
    assert on_ranks(exchange_drawn, 3, "processes", seed, within=60) == [[]] * 3


def passes_numbers_around() -> list[float]:
    """Return what this rank gets in a ring of blocking calls, each from lines of its own."""
    shim.init_process_group("gloo")
    rank, size, found = shim.get_rank(), shim.get_world_size(), list[float]()
    x = torch.zeros(3)
    for round_ in range(30):
        if rank == 0:
            shim.send(torch.full((3,), float(round_)), 1)
            shim.recv(x, size - 1)
        elif round_ % 2:
            shim.recv(x, rank - 1)
            shim.send(x + 1, (rank + 1) % size)
        else:
            shim.recv(x, rank - 1)
            shim.send(x + 1, (rank + 1) % size)
        found.append(x[0].item())
    return found


def test_ring_of_repeated_calls_keeps_its_values() -> None:
    found = on_ranks(passes_numbers_around, 3, "processes", within=60)
    assert found == [[float(number + add) for number in range(30)] for add in (2, 0, 1)]


def in_line_after_out_of_line() -> list[float]:
    """Return what receives of one tag get if messages of another one came before, unasked."""
    shim.init_process_group("gloo")
    x, found = torch.zeros(3), list[float]()
    for number in range(6):
        if shim.get_rank() == 0:
            shim.send(torch.full((3,), number + 0.5), 1, tag=2)
            shim.send(torch.full((3,), float(number)), 1, tag=1)
        else:
            shim.recv(x, 0, tag=1)
            found.append(x[0].item())
            shim.recv(x, 0, tag=2)
            found.append(x[0].item())
    return found


def test_tags_are_matched_in_line_too() -> None:
    found = on_ranks(in_line_after_out_of_line, 2, "processes", within=60)[1]
    assert found == [half / 2 for half in range(12)]


def receives_another_shape() -> str:
    """Return the error of a receive whose message is unlike those before."""
    shim.init_process_group("gloo")
    if shim.get_rank() == 0:
        for count in (3, 3, 3, 4):
            shim.send(torch.ones(count), 1)
        return ""
    for _ in range(3):
        shim.recv(torch.zeros(3), 0)
    with pytest.raises(collshim.CollshimError) as caught:
        shim.recv(torch.zeros(3), 0)
    return str(caught.value)


def test_unlike_message_is_an_error_in_line_too() -> None:
    text = on_ranks(receives_another_shape, 2, "processes", within=60)[1]
    assert "(4,)" in text
    assert "(3,)" in text
