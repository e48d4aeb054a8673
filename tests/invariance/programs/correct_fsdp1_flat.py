"""FSDP1 with flat parameters, whose lengths are no multiples of the number of ranks."""

from __future__ import annotations

import torch
from networks import Network, make_examples, mean_loss, take_part
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel

OWN_VALUES = True  # the names of flat parameters are not those of the model

batch = make_examples


class OddNetwork(nn.Module):
    """A network with one number more."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network()
        self.shift = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        """Compute the logits."""
        return self.network(x) * self.shift


def step(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, nn.Module]:
    """Take one step."""
    model = FullyShardedDataParallel(OddNetwork(), device_id=torch.device("cpu"))
    loss = mean_loss(model, take_part(batch))
    loss.backward()
    return loss, model
