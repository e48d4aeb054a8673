"""fairscale: OSS with ShardedDataParallel, layers of its model parallelism, and AdaScale."""

from __future__ import annotations

from collections.abc import Callable

import torch
from fairscale.nn.data_parallel import ShardedDataParallel
from fairscale.nn.model_parallel import initialize as parallel
from fairscale.nn.model_parallel.layers import ColumnParallelLinear, RowParallelLinear
from fairscale.optim import OSS, AdaScale
from torch import nn

from tests.upstream.programs.ranks import run_named, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, train, trained_alone


def sharded(rank: int, size: int) -> object:
    """Shard the optimizer's state and the gradients."""
    model = small_model()
    optimizer = OSS(model.parameters(), optim=torch.optim.SGD, lr=0.1)
    wrapped = ShardedDataParallel(model, optimizer, reduce_buffer_size=0)
    losses = train(wrapped, optimizer, [own_batch(step, rank, size) for step in range(3)])
    optimizer.consolidate_state_dict(0)
    assert_same(model, trained_alone(size))
    return {"losses": losses, "weights": weights(model)}


def oss(rank: int, size: int) -> object:
    """Shard only the optimizer's state, beside DistributedDataParallel."""
    model = nn.parallel.DistributedDataParallel(small_model())
    optimizer = OSS(model.parameters(), optim=torch.optim.Adam, lr=0.1, broadcast_fp16=False)
    losses = train(model, optimizer, [own_batch(step, rank, size) for step in range(3)])
    assert_same(model.module, trained_alone(size, optimizer=torch.optim.Adam), 1e-4)
    return {"losses": losses, "norm": float(optimizer.clip_grad_norm(0.1)), "weights": weights(model)}


def adascale(rank: int, size: int) -> object:
    """Estimate the gain from the variance between ranks."""
    model = nn.parallel.DistributedDataParallel(small_model())
    optimizer = AdaScale(torch.optim.SGD(model.parameters(), lr=0.1))
    gains = []
    for step in range(3):
        train(model, optimizer, [own_batch(step, rank, size)])
        gains.append(optimizer.gain())
    return {"gains": gains, "weights": weights(model)}


def model_parallel(rank: int, size: int) -> object:
    """Split two layers over the ranks."""
    parallel.initialize_model_parallel(size, ddp_backend=None)
    torch.manual_seed(0)
    first, second = ColumnParallelLinear(6, 8, gather_output=False), RowParallelLinear(8, 3, input_is_parallel=True)
    inputs = torch.arange(12.0).reshape(2, 6).sin().requires_grad_()
    output = second(torch.relu(first(inputs)))
    output.square().sum().backward()
    assert inputs.grad is not None
    return {"output": output, "gradient": inputs.grad}


USES: dict[str, Callable[[int, int], object]] = {
    "sharded": sharded,
    "oss": oss,
    "adascale": adascale,
    "model-parallel": model_parallel,
}


if __name__ == "__main__":
    run_named(USES)
