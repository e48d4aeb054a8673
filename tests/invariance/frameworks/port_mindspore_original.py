"""Train three data-parallel steps with MindSpore; the other port_*.py are its ports to torch."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.communication import get_group_size, get_rank, init

STEPS, RATE = 3, 0.001


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


def step(batch: tuple[Any, Any]) -> tuple[list[float], dict[str, Any]]:
    """Train; return the losses of this rank's rows, and the last gradients' means over the ranks."""
    init()
    own = slice(get_rank(), None, get_group_size())
    x, wanted = (Tensor(part[own]) for part in batch)
    net = Net()
    parameters = net.trainable_params()
    reducer = nn.DistributedGradReducer(parameters, mean=True)
    forward = ms.value_and_grad(lambda: ((net(x) - wanted) ** 2).mean(), None, parameters)
    losses = []
    for _ in range(STEPS):
        loss, gradients = forward()
        gradients = reducer(gradients)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.set_data(parameter - RATE * gradient)
        losses.append(float(loss.asnumpy()))
    names = [parameter.name for parameter in parameters]
    return losses, dict(zip(names, gradients, strict=True))
