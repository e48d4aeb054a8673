"""Train as port_mindspore_original.py does, with torch: a port that takes the gradients' means."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

STEPS, RATE = 3, 0.001


class Net(nn.Module):
    """Two layers; every instance has the same parameters."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden = nn.Parameter(torch.tensor(numbers.normal(size=(3, 5)).astype(np.float32)))
        self.shift = nn.Parameter(torch.tensor(numbers.normal(size=5).astype(np.float32)))
        self.out = nn.Parameter(torch.tensor(numbers.normal(size=(5, 1)).astype(np.float32)))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each row of ``x``."""
        return (x @ self.hidden + self.shift).square() @ self.out


def batch() -> tuple[Any, Any]:
    """Return 8 rows of inputs, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


def step(batch: tuple[Any, Any]) -> tuple[list[float], dict[str, Any]]:
    """Train; return the losses of this rank's rows, and the last gradients' means over the ranks."""
    own = slice(dist.get_rank(), None, dist.get_world_size())
    x, wanted = (torch.tensor(part[own]) for part in batch)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (net(x) - wanted).square().mean()
        loss.backward()
        for parameter in net.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: parameter.grad for name, parameter in net.named_parameters()}
