"""What torch.distributed is asked: everything that ``frameworks`` users call, over gloo."""

from __future__ import annotations

from collshim.conformance.recorder.asked import Asked
from collshim.conformance.recorder.catalogue import torch_groups, torch_moves, torch_reductions

CALLS: list[Asked] = [*torch_reductions.CALLS, *torch_moves.CALLS, *torch_groups.CALLS]
