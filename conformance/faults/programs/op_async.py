"""different op: rank 1 posts a broadcast where the others post a reduction, and all wait later.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The line is where the call was posted, not where it was waited for."""
    ones = torch.ones(4)
    if dist.get_rank() == 1:
        broadcast = dist.broadcast(ones, src=0, async_op=True)  # <- here
        broadcast.wait()
    else:
        reduction = dist.all_reduce(ones, async_op=True)
        reduction.wait()


def twin(dist: Any) -> None:
    """Two reductions under way, waited for in the other order."""
    ones, more = torch.ones(4), torch.full((4,), 2.0)
    works = [dist.all_reduce(ones, async_op=True), dist.all_reduce(more, async_op=True)]
    for work in reversed(works):
        work.wait()
    assert ones.tolist() == [3.0] * 4
    assert more.tolist() == [6.0] * 4
