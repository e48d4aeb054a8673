"""Wraps a model in DistributedDataParallel whose experts are others on each rank."""

from __future__ import annotations

from dispatch import DispatchNetwork
from networks import make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

PARAMETERS = ["experts"]

batch = make_examples


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = DispatchNetwork()
    wrapped = DistributedDataParallel(model)  # fault
    loss = mean_loss(wrapped, take_part(batch))
    loss.backward()
    return loss, model
