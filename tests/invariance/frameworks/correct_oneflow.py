"""Train one data-parallel step with OneFlow's DistributedDataParallel."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.oneflow as flow
from collshim.oneflow import nn
from collshim.oneflow.nn.parallel import DistributedDataParallel


class Net(nn.Module):  # type: ignore[misc]
    """Two layers; every instance has the same parameters."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden, self.out = nn.Linear(3, 5), nn.Linear(5, 1)
        for parameter in self.parameters():
            parameter.data.copy_(flow.tensor(numbers.normal(size=tuple(parameter.shape)).astype(np.float32)))

    def forward(self, x: Any) -> Any:
        """Return one number for each row of ``x``."""
        return self.out(flow.tanh(self.hidden(x)))


def batch() -> tuple[Any, Any]:
    """Return 8 rows of inputs, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


def step(batch: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the loss of this rank's rows, and the gradients' means over the ranks."""
    own = slice(flow.env.get_rank(), None, flow.env.get_world_size())
    x, wanted = (flow.tensor(part[own]) for part in batch)
    net = DistributedDataParallel(Net())
    loss = nn.MSELoss()(net(x), wanted)
    loss.backward()
    return loss, {name: parameter.grad for name, parameter in net.named_parameters()}
