"""A rank that comes after the deadline: what those who gave up are told, and that they get no late result."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.engine.worlds import Outcome, attempt, fresh

SHORT = 1.0
LONG = 60.0


class Seen(NamedTuple):
    """What a rank was told at its wait, at another one after the late rank had called, and at its next call.

    ``place`` is where the result was to go.
    """

    first: Outcome
    again: Outcome
    afterwards: Outcome
    place: list[float]


def late(length: int) -> Seen:
    """Rank 2 calls when the others have given up."""
    control, comm = fresh(), fresh()
    control.timeout, comm.timeout = LONG, SHORT
    place = torch.full((length,), -1.0)
    if comm.rank == 2:
        control.barrier().wait()
        return _late_rank(control, comm, place)
    work = comm.all_reduce(torch.ones(length), out=place)
    first = attempt(work.wait)
    control.barrier().wait()
    control.barrier().wait()
    return Seen(first, attempt(work.wait), attempt(lambda: _reduced(comm, place)), place[:3].tolist())


def _late_rank(control: Communicator, comm: Communicator, place: Tensor) -> Seen:
    first = attempt(lambda: _reduced(comm, place))
    control.barrier().wait()
    return Seen(first, first, attempt(lambda: _reduced(comm, place)), place[:3].tolist())


def _reduced(comm: Communicator, place: Tensor) -> Tensor:
    work: Work[Tensor] = comm.all_reduce(torch.ones(len(place)), out=place)
    return work.wait()
