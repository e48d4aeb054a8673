"""A layer divided between ranks, with MegEngine's names: python docs/examples/megengine_tensor_parallel.py.

Each rank has some rows of the first weight and the columns of the second that belong to them. ``all_reduce_sum`` adds
up the ranks' results. Its gradient is the sum of all ranks' gradients. Since every rank differentiates the same loss,
each divides it by the number of ranks. The gradients are those of the whole layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import collshim.megengine as mge
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
import collshim.megengine.module as M
from collshim.megengine.autodiff import GradManager

FEATURES, HIDDEN, BATCH = 6, 8, 5


class Layer(M.Module):
    """Two linear layers with some of the hidden units: all of them, or those of this rank."""

    def __init__(self, up: Any, down: Any) -> None:
        super().__init__()
        self.up, self.down = mge.Parameter(up), mge.Parameter(down)

    def forward(self, x: Any) -> Any:
        """Return the contribution of these hidden units to the result."""
        return F.linear(F.relu(F.linear(x, self.up)), self.down)


def gradients(layer: Layer, x: Any, join: Any, share: float) -> list[Any]:
    """Return the loss, and the gradients of both weights."""
    with GradManager().attach(layer.parameters()) as manager:
        loss = (join(layer(mge.tensor(x))) ** 2).mean()
        manager.backward(loss * share)
    return [loss.item(), layer.up.grad.numpy(), layer.down.grad.numpy()]  # type: ignore[union-attr]


def parallel(up: Any, down: Any, x: Any) -> list[Any]:
    """Return the loss and the gradients of this rank's part of the layer."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = slice(rank * HIDDEN // size, (rank + 1) * HIDDEN // size)
    return gradients(Layer(up[own], down[:, own]), x, F.distributed.all_reduce_sum, 1 / size)


if __name__ == "__main__":
    generator = np.random.default_rng(3)
    up, down, x = (
        generator.normal(size=shape).astype("float32")
        for shape in ((HIDDEN, FEATURES), (FEATURES, HIDDEN), (BATCH, FEATURES))
    )
    parts = dist.launcher(parallel, n_gpus=2)(up, down, x)
    loss, up_grad, down_grad = gradients(Layer(up, down), x, lambda y: y, 1)
    np.testing.assert_allclose([part[0] for part in parts], [loss, loss], rtol=1e-5)
    np.testing.assert_allclose(np.concatenate([part[1] for part in parts]), up_grad, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([part[2] for part in parts], axis=1), down_grad, rtol=1e-4, atol=1e-5)
    print(f"loss {loss:.4f} on each of {len(parts)} ranks, and the gradients of the whole layer")
