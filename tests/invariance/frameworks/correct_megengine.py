"""Train one data-parallel step with MegEngine's GradManager and make_allreduce_cb."""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim
import collshim.megengine as mge
import collshim.megengine.autodiff as autodiff
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
import collshim.megengine.module as M


class Net(M.Module):
    """Two layers; every instance has the same parameters."""

    def __init__(self) -> None:
        super().__init__()
        numbers = np.random.default_rng(1)
        self.hidden, self.out = M.Linear(3, 5), M.Linear(5, 1)
        for _, parameter in sorted(self.named_parameters()):
            parameter[...] = mge.tensor(numbers.normal(size=tuple(parameter.shape)).astype(np.float32))

    def forward(self, x: Any) -> Any:
        """Return one number for each row of ``x``."""
        return self.out(F.tanh(self.hidden(x)))


def batch() -> tuple[Any, Any]:
    """Return 8 rows of inputs, and what is wanted for each."""
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return rows, rows.sum(1, keepdims=True)


def step(batch: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the loss of this rank's rows, and the gradients' means over the ranks."""
    world = collshim.current()
    if world.size > 1:  # MegEngine has no group of one rank
        dist.init_process_group("localhost", 8000, world.size, world.rank, device=world.rank)
    own = slice(dist.get_rank(), None, dist.get_world_size())
    x, wanted = (mge.tensor(part[own]) for part in batch)
    net = Net()
    manager = autodiff.GradManager()
    manager.attach(net.parameters(), callbacks=[dist.make_allreduce_cb("mean")] if world.size > 1 else None)
    with manager:
        loss = F.nn.square_loss(net(x), wanted)
        manager.backward(loss)
    return loss, {name: parameter.grad for name, parameter in net.named_parameters()}
