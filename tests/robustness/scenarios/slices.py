"""A peer that comes just when the first slice of a wait is over, on two processes."""

from __future__ import annotations

import time
from typing import Any

import torch

from collshim.transports.waiting import FIRST_SLICE
from tests.engine.worlds import world

ROUNDS = 20
STEP = 0.0002
"""Seconds by which the moments differ at which the peer comes."""

LENGTHS = (3, 300_000)


def meets_at_the_end_of_a_slice() -> Any:
    """How many calls went right; rank 1 comes a little before the end, at it, and a little after it."""
    comm, right = world(), 0
    for place in range(ROUNDS):
        length = LENGTHS[place % 2]
        comm.barrier().wait()
        if comm.rank:
            time.sleep(FIRST_SLICE + (place // 2 % 15 - 8) * STEP)
        total = comm.all_reduce(torch.full((length,), comm.rank + place)).wait()
        right += bool((total == 2 * place + 1).all())
    return right
