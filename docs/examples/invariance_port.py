"""The port of invariance_port_original.py to torch, with a wrong factor: see docs/invariance.md."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

Rows = npt.NDArray[np.float32]


def batch() -> tuple[Rows, Rows]:
    """Return the original's global batch."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


class Net(nn.Module):
    """Two layers, which begin with the original's numbers."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden = nn.Parameter(torch.tensor(numbers.normal(size=(3, 5)), dtype=torch.float32))
        self.out = nn.Parameter(torch.tensor(numbers.normal(size=(5, 1)), dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each row."""
        return x @ self.hidden @ self.out


def step(batch: tuple[Rows, Rows]) -> tuple[list[Tensor], nn.Module]:
    """Return the losses before and after a step of SGD, and the model with the step's gradients."""
    x, wanted = (torch.tensor(part[dist.get_rank() :: dist.get_world_size()]) for part in batch)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    before = (net(x) - wanted).square().mean()
    before.backward()
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    after = (net(x) - wanted).square().mean()
    return [before, after], net
