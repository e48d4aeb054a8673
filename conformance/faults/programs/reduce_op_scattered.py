"""reduce op: rank 2 multiplies where the others sum, each a part.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """One rank reduces otherwise."""
    op = dist.ReduceOp.PRODUCT if dist.get_rank() == 2 else dist.ReduceOp.SUM
    dist.reduce_scatter(torch.empty(2), [torch.ones(2) for _ in range(3)], op=op)  # <- here


def twin(dist: Any) -> None:
    """One op."""
    part = torch.empty(2)
    dist.reduce_scatter(part, [torch.full((2,), float(rank + 1)) for rank in range(3)])
    assert part.tolist() == [3.0 * (dist.get_rank() + 1)] * 2
