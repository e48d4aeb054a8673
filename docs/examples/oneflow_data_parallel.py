"""Data parallel training in the style of OneFlow's tutorial: two ranks, each with its own data, learn one weight.

    collshim run --as oneflow -n 2 docs/examples/oneflow_data_parallel.py
    python -m oneflow.distributed.launch --nproc_per_node 2 docs/examples/oneflow_data_parallel.py

The second line runs it on OneFlow itself: 0.9.0 prints the same losses, to the last digit.
"""

from typing import Any

import oneflow as flow
from oneflow.nn.parallel import DistributedDataParallel

STEPS = 500
INPUTS = [[[1, 2], [2, 3]], [[4, 6], [3, 1]]]
WANTED = [[[8], [13]], [[26], [9]]]  # of the weight (2, 3)


class Model(flow.nn.Module):  # type: ignore[misc]
    """A product with a weight of two numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = flow.nn.Parameter(flow.tensor([[0], [0]], dtype=flow.float32))

    def forward(self, x: Any) -> Any:
        """Return the product of ``x`` and the weight."""
        return flow.matmul(x, self.weight)


def main() -> None:
    """Train, and print rank 1's loss every 50 steps."""
    rank = flow.env.get_rank()
    x = flow.tensor(INPUTS[rank], dtype=flow.float32)
    y = flow.tensor(WANTED[rank], dtype=flow.float32)
    model = DistributedDataParallel(Model())
    loss_of = flow.nn.MSELoss(reduction="sum")
    optimizer = flow.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        loss = loss_of(model(x), y)
        if step % 50 == 0 and rank == 1:
            print(f"{step}/{STEPS} loss: {loss.item()}", flush=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 1:
        print(f"weight: {model.weight.numpy().ravel().tolist()}", flush=True)


if __name__ == "__main__":
    main()
