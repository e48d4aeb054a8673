"""missing rank: rank 1 waits for a message that nobody sends, the others at a barrier.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """It cannot come while it waits."""
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4), src=0)  # <- here
    dist.barrier()


def twin(dist: Any) -> None:
    """The message is sent."""
    got = torch.zeros(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 4
    dist.barrier()
