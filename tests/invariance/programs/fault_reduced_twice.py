"""Sums the partial results of a row-parallel layer with a function whose backward sums the gradients too."""

from __future__ import annotations

import torch.distributed as dist
from mappings import CopyToRegion
from networks import FEATURES, make_examples
from torch import Tensor, nn
from torch.distributed.nn.functional import all_reduce

HIDDEN = 32
PARAMETERS = ["0.weight", "1.weight"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    own = HIDDEN // dist.get_world_size()
    up, down = nn.Linear(FEATURES, own), nn.Linear(own, FEATURES, bias=False)
    hidden = up(CopyToRegion.apply(batch[0], dist.group.WORLD)).relu()
    loss = all_reduce(down(hidden)).square().mean()  # fault
    loss.backward()
    return loss, nn.ModuleList([up, down])
