"""FullyShardedDataParallel: strategies, offloading, gradient norms, and full and sharded state dicts."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

from tests.upstream.programs.ranks import run_named
from tests.upstream.programs.training import own_batch, small_model, train, trained_alone

CPU = torch.device("cpu")


def _trained(rank: int, size: int, **options: object) -> FullyShardedDataParallel:
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=20)
    model = FullyShardedDataParallel(
        small_model(),
        device_id=CPU,
        auto_wrap_policy=policy,
        **options,  # type: ignore[arg-type]
    )
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, rank, size) for step in range(3)])
    return model


def _whole(model: FullyShardedDataParallel, size: int) -> dict[str, float]:
    """Return the sums of the gathered parameters, after comparing them with those of one process."""
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        state = model.state_dict()
    wanted = trained_alone(size).state_dict()
    assert state.keys() == wanted.keys()
    for name, tensor in wanted.items():
        torch.testing.assert_close(state[name], tensor)
    return {name: float(tensor.double().sum()) for name, tensor in state.items()}


def full_shard(rank: int, size: int) -> object:
    return _whole(_trained(rank, size), size)


def grad_op(rank: int, size: int) -> object:
    return _whole(_trained(rank, size, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP), size)


def no_shard(rank: int, size: int) -> object:
    return _whole(_trained(rank, size, sharding_strategy=ShardingStrategy.NO_SHARD), size)


def original_parameters(rank: int, size: int) -> object:
    return _whole(_trained(rank, size, use_orig_params=True), size)


def clipped(rank: int, size: int) -> object:
    """Clip the gradients' norm, which is that of all shards."""
    model = FullyShardedDataParallel(small_model(), device_id=CPU)
    inputs, targets = own_batch(0, rank, size)
    nn.functional.mse_loss(model(inputs), targets).backward()
    return model.clip_grad_norm_(0.1)


def sharded_state(rank: int, size: int) -> object:
    """Save and load a sharded state dict."""
    model = _trained(rank, size)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        state = model.state_dict()
        model.load_state_dict(state)
    return {"names": sorted(state), "whole": _whole(model, size)}


def optimizer_state(rank: int, size: int) -> object:
    """Gather Adam's state on rank 0, and give each rank its part again."""
    model = FullyShardedDataParallel(small_model(), device_id=CPU, use_orig_params=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    train(model, optimizer, [own_batch(0, rank, size)])
    state = FullyShardedDataParallel.optim_state_dict(model, optimizer)
    optimizer.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(model, optimizer, state))
    return train(model, optimizer, [own_batch(step, rank, size) for step in (1, 2)])


USES: dict[str, Callable[[int, int], object]] = {
    "full-shard": full_shard,
    "grad-op": grad_op,
    "no-shard": no_shard,
    "original-parameters": original_parameters,
    "clipped": clipped,
    "sharded-state": sharded_state,
    "optimizer-state": optimizer_state,
}


if __name__ == "__main__":
    run_named(USES)
