"""Tensor parallelism in the style of OneFlow's tutorials: one perceptron, whose weights are divided between the ranks.

    collshim run --as oneflow -n 2 docs/examples/oneflow_tensor_parallel.py

The first layer is divided by columns and the second by rows, so that one sum over the ranks gives the output, and one
in the backward gives the gradient of the input. Every rank compares its results and gradients with those of the whole
layers.
"""

from typing import Any

import numpy as np
import oneflow as flow

BATCH, WIDTH, HIDDEN = 4, 6, 8


class Enter(flow.autograd.Function):  # type: ignore[misc]
    """The identity; its gradient is the sum of the gradients of the ranks' parts."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Return the input."""
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the sum of all ranks' gradients."""
        total = gradient.clone()
        flow.comm.all_reduce(total)
        return total


class Leave(flow.autograd.Function):  # type: ignore[misc]
    """The sum of all ranks' parts of the output; each part has the output's gradient."""

    @staticmethod
    def forward(ctx: Any, part: Any) -> Any:
        """Return the sum of all ranks' parts."""
        total = part.clone()
        flow.comm.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the output's gradient."""
        return gradient.clone()


def weights() -> Any:
    """Return the input and the whole weights, the same on every rank."""
    numbers = np.random.default_rng(0)
    shapes = [(BATCH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    return [flow.tensor(numbers.standard_normal(shape).astype(np.float32), requires_grad=True) for shape in shapes]


def main() -> None:
    """Compute both ways, and print the largest difference."""
    rank, size = flow.env.get_rank(), flow.env.get_world_size()
    x, first, second = weights()
    whole = flow.matmul(flow.nn.functional.gelu(flow.matmul(x, first)), second)
    (whole**2).sum().backward()

    mine = slice(rank * HIDDEN // size, (rank + 1) * HIDDEN // size)
    x_here, first_all, second_all = weights()
    columns = first_all.detach()[:, mine].clone().requires_grad_()
    rows = second_all.detach()[mine].clone().requires_grad_()
    hidden = flow.nn.functional.gelu(flow.matmul(Enter.apply(x_here), columns))
    output = Leave.apply(flow.matmul(hidden, rows))
    (output**2).sum().backward()

    pairs = {
        "output": (output, whole),
        "gradient of the input": (x_here.grad, x.grad),
        "gradient of the columns": (columns.grad, first.grad[:, mine]),
        "gradient of the rows": (rows.grad, second.grad[mine]),
    }
    for what, (ours, serial) in pairs.items():
        expected = serial.numpy()
        apart = np.abs(ours.numpy() - expected).max() / np.abs(expected).max()
        verdict = "agrees" if apart < 1e-6 else f"is {apart} apart"
        print(f"rank {rank}: {what} {verdict}\n", end="", flush=True)


if __name__ == "__main__":
    main()
