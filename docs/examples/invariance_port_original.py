"""One data-parallel training step with MindSpore's names; invariance_port.py is its port to torch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn, ops
from collshim.mindspore.communication import get_group_size, get_rank, init

Rows = npt.NDArray[np.float32]


def batch() -> tuple[Rows, Rows]:
    """Return the global batch: 8 rows, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


class Net(nn.Cell):
    """Two layers, which begin with the same numbers in every run."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden = Parameter(Tensor(numbers.normal(size=(3, 5)).astype(np.float32)), name="hidden")
        self.out = Parameter(Tensor(numbers.normal(size=(5, 1)).astype(np.float32)), name="out")

    def construct(self, x: Tensor) -> Tensor:
        """Return one number for each row."""
        return ops.matmul(ops.matmul(x, self.hidden), self.out)


def step(batch: tuple[Rows, Rows]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Return the losses before and after a step of SGD, and the step's gradients."""
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    x, wanted = (Tensor(part[get_rank() :: get_group_size()]) for part in batch)
    net = Net()
    parameters = net.trainable_params()
    reducer = nn.DistributedGradReducer(parameters)
    forward = ms.value_and_grad(lambda: ((net(x) - wanted) ** 2).mean(), None, parameters)
    before, gradients = forward()
    gradients = reducer(gradients)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.set_data(parameter - 0.02 * gradient)
    after, _ = forward()
    return [before, after], {one.name: gradient for one, gradient in zip(parameters, gradients, strict=True)}
