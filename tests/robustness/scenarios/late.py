"""A rank that comes after the deadline: what those who gave up are told, and that nobody gets a late result."""

from __future__ import annotations

from typing import NamedTuple

import torch

from tests.engine.worlds import Outcome, attempt, fresh

SHORT = 1.0
LONG = 60.0


class Seen(NamedTuple):
    """What a rank was told at its wait and at another one after the late rank had called; where the result was to go.

    The late rank calls twice.
    """

    first: Outcome
    again: Outcome
    place: list[float]


def late(length: int) -> Seen:
    """Rank 2 calls when the others have given up."""
    control, comm = fresh(), fresh()
    control.timeout, comm.timeout = LONG, SHORT
    place = torch.full((length,), -1.0)
    if comm.rank == 2:
        control.barrier().wait()
        first, again = (attempt(lambda: comm.all_reduce(torch.ones(length), out=place).wait()) for _ in range(2))
        control.barrier().wait()
    else:
        work = comm.all_reduce(torch.ones(length), out=place)
        first = attempt(work.wait)
        control.barrier().wait()
        control.barrier().wait()
        again = attempt(work.wait)
    return Seen(first, again, place[:3].tolist())
