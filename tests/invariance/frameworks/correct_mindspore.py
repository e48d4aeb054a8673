"""Train one data-parallel step with MindSpore's value_and_grad and DistributedGradReducer."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.communication import get_group_size, get_rank, init


class Net(nn.Cell):
    """Two layers; every instance has the same parameters."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden = Parameter(Tensor(numbers.normal(size=(3, 5)).astype(np.float32)), name="hidden")
        self.shift = Parameter(Tensor(numbers.normal(size=5).astype(np.float32)), name="shift")
        self.out = Parameter(Tensor(numbers.normal(size=(5, 1)).astype(np.float32)), name="out")

    def construct(self, x: Tensor) -> Tensor:
        """Return one number for each row of ``x``."""
        hidden = ops.add(ops.matmul(x, self.hidden), self.shift)
        return ops.matmul(hidden * hidden, self.out)


def batch() -> tuple[Any, Any]:
    """Return 8 rows of inputs, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


def step(batch: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the loss of this rank's rows, and the gradients' means over the ranks."""
    init()
    own = slice(get_rank(), None, get_group_size())
    x, wanted = (Tensor(part[own]) for part in batch)
    net = Net()
    parameters = net.trainable_params()
    reducer = nn.DistributedGradReducer(parameters, mean=True)
    loss, gradients = ms.value_and_grad(lambda: ((net(x) - wanted) ** 2).mean(), None, parameters)()
    names = [parameter.name for parameter in parameters]
    return loss, dict(zip(names, reducer(gradients), strict=True))
