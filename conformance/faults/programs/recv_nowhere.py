"""send to a rank that does not exist: rank 0 receives from rank 3 of 3, its neighbour in a ring.

blame: 0
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """There is no such rank; the others wait at the barrier."""
    rank = dist.get_rank()
    neighbour = rank + 3 if rank == 0 else rank - 1
    work = dist.isend(torch.ones(4), dst=(rank + 1) % 3)
    dist.recv(torch.empty(4), src=neighbour)  # <- here
    work.wait()
    dist.barrier()


def twin(dist: Any) -> None:
    """A ring that closes."""
    rank = dist.get_rank()
    got = torch.empty(4)
    work = dist.isend(torch.full((4,), float(rank)), dst=(rank + 1) % 3)
    dist.recv(got, src=(rank - 1) % 3)
    work.wait()
    dist.barrier()
    assert got.tolist() == [float((rank - 1) % 3)] * 4
