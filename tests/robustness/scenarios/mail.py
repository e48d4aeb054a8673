"""Many messages at once, received in another order than they were sent."""

from __future__ import annotations

import random
import threading
from typing import Any

import torch

import collshim
from collshim.world import use
from tests.engine.worlds import world

MESSAGES = 200
LENGTHS = (0, 1, 7, 300, 5_000, 20_000, 300_000)
"""Lengths that travel with the envelope, that are offered and travel along, and that are offered and follow."""

FOR_EACH = 60


def _length(source: int, number: int) -> int:
    return LENGTHS[(7 * source + 3 * number) % len(LENGTHS)]


def _to(source: int, number: int, size: int) -> int:
    return (source + 1 + number % (size - 1)) % size


def receives_in_another_order(seed: int) -> list[str]:
    """Describe errors in the messages that this rank received; every rank sends as many, each with its own tag."""
    comm, wrong = world(), list[str]()
    awaited = [(source, n) for source in range(comm.size) for n in range(MESSAGES)]
    awaited = [each for each in awaited if each[0] != comm.rank and _to(*each, comm.size) == comm.rank]
    order = random.Random(seed + comm.rank)
    order.shuffle(awaited)
    sent, received = list[Any](), list[Any]()
    for number in range(MESSAGES):
        data = torch.full((_length(comm.rank, number),), float(1000 * comm.rank + number))
        sent.append(comm.send(data, _to(comm.rank, number, comm.size), tag=number * comm.size + comm.rank))
        if number % 2:
            received += [_posted(comm, *each) for each in awaited[len(received) : len(received) + 2]]
    received += [_posted(comm, *each) for each in awaited[len(received) :]]
    for place in order.sample(range(len(received)), len(received)):
        (source, number), work = awaited[place], received[place]
        data = work.wait()
        if data.shape != (_length(source, number),) or bool((data != 1000 * source + number).any()):
            wrong.append(f"message {number} of rank {source}: {data.shape} {data[:3].tolist()}")
        if work.source not in (None, source):
            wrong.append(f"message {number} of rank {source}: said to be of rank {work.source}")
    for work in sent:
        work.wait()
    return wrong if len(awaited) > MESSAGES // 2 else ["few messages were awaited"]


def _posted(comm: Any, source: int, number: int) -> Any:
    given = None if number % 3 == 0 else source
    return comm.recv(given, tag=number * comm.size + source, like=torch.zeros(_length(source, number)))


def two_threads_receive() -> list[list[float]]:
    """Return what each of two threads of rank 0 received, in order, while both wait at the same time."""
    comm, own = world(), collshim.current()
    if comm.rank:
        for number in range(FOR_EACH):
            for tag in (0, 1):
                comm.send(torch.full((LENGTHS[1 + (number + tag) % 6],), float(1000 * tag + number)), 0, tag=tag).wait()
        return []
    found: list[list[float]] = [[], []]

    def receives(tag: int) -> None:
        with use(own):
            for number in range(FOR_EACH):
                data = comm.recv(1, tag=tag, like=torch.zeros(LENGTHS[1 + (number + tag) % 6])).wait()
                found[tag] += set(data.tolist())

    threads = [threading.Thread(target=receives, args=(tag,), daemon=True) for tag in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found
