"""recv buffer too small: rank 2 has room for half of the megabyte that rank 0 sends.

blame: 2
told: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The rest would lie behind the buffer."""
    if dist.get_rank() == 0:
        dist.isend(torch.ones(1 << 18), dst=2).wait()
    if dist.get_rank() == 2:
        dist.irecv(torch.empty(1 << 17), src=0).wait()  # <- here


def twin(dist: Any) -> None:
    """Room for all."""
    got = torch.empty(1 << 18)
    if dist.get_rank() == 0:
        dist.isend(torch.ones(1 << 18), dst=2).wait()
    if dist.get_rank() == 2:
        dist.irecv(got, src=0).wait()
        assert got.eq(1.0).all()
