"""Warnings when a group is closed: messages that nobody received, receives that nobody answered."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from tests.engine.worlds import CHECKED, on_ranks, world


def leaves_messages() -> list[str]:
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    if comm.rank == 0:
        for _ in range(2):
            part.send(torch.ones(3), 1).wait()
        part.recv(1, like=torch.ones(5), tag=7)
    comm.barrier().wait()
    return warned_at_the_close_of(part)


def leaves_a_large_one() -> list[str]:
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    work = part.send(torch.ones(100_000), 1) if comm.rank == 0 else None
    comm.barrier().wait()
    texts = warned_at_the_close_of(part)
    comm.barrier().wait()
    del work
    return texts


def leaves_nothing() -> list[str]:
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    sent = part.send(torch.ones(100_000), 1 - comm.rank)
    part.recv(1 - comm.rank, like=torch.ones(100_000)).wait()
    sent.wait()
    comm.barrier().wait()
    return warned_at_the_close_of(part)


def warned_at_the_close_of(part: Any) -> list[str]:
    """Close on one rank after the other, because threads share the filters of warnings."""
    comm, texts = world(), list[str]()
    for rank in range(comm.size):
        comm.barrier().wait()
        if rank == comm.rank:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                part.close()
            texts = [str(each.message) for each in seen if each.category is ResourceWarning]
    comm.barrier().wait()
    return texts


def test_unreceived_small_messages_are_named_with_lines(transport: str) -> None:
    sender, receiver = on_ranks(leaves_messages, 2, transport)
    site = "" if transport not in CHECKED else " at test_leaks.py:"
    assert len(sender) == len(receiver) == 1, (sender, receiver)
    assert f"recv(shape (5,), float32, from 1){site}" in sender[0]
    assert "on rank 0 was never answered" in sender[0]
    assert f"send(shape (3,), float32, to 1){site}" in receiver[0]
    assert "of rank 0 (2 times) was never received by rank 1" in receiver[0]


def test_unreceived_large_message_is_named(transport: str) -> None:
    texts = [text for texts in on_ranks(leaves_a_large_one, 2, transport) for text in texts]
    assert any("send(shape (100000,), float32, to 1)" in text and "never received" in text for text in texts), texts


def test_nothing_is_reported_without_leaks(transport: str) -> None:
    assert on_ranks(leaves_nothing, 2, transport) == [[], []]
