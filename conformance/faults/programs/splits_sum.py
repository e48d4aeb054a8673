"""split sizes: rank 1 gives 5 of its 6 elements away.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The splits do not sum up to the length, which one rank can see alone."""
    given = [2, 2, 1] if dist.get_rank() == 1 else [2, 2, 2]
    dist.all_to_all_single(torch.empty(6), torch.ones(6), [2, 2, 2], given)  # <- here


def twin(dist: Any) -> None:
    """Everything is given away."""
    output = torch.empty(6)
    dist.all_to_all_single(output, torch.full((6,), float(dist.get_rank())), [2, 2, 2], [2, 2, 2])
    assert output.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
