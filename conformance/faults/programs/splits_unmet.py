"""split sizes: rank 1 awaits 1 element of everybody, who give it 2.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """What is given and what is awaited differ."""
    rank = dist.get_rank()
    awaited = [1, 1, 1] if rank == 1 else [rank + 1] * 3
    dist.all_to_all_single(torch.empty(sum(awaited)), torch.ones(6), awaited, [1, 2, 3])  # <- here


def twin(dist: Any) -> None:
    """What is given is awaited."""
    mine = torch.arange(6.0)
    given = [1, 2, 3]
    awaited = [dist.get_rank() + 1] * 3
    output = torch.empty(sum(awaited))
    dist.all_to_all_single(output, mine, awaited, given)
    start = [0, 1, 3][dist.get_rank()]
    assert output.tolist() == mine[start : start + awaited[0]].tolist() * 3
