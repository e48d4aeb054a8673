"""DistributedDataParallel with communication hooks, each named by an argument."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed import BuiltinCommHookType
from torch.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power_sgd

from tests.upstream.programs.ranks import run, show, weights
from tests.upstream.programs.training import assert_same, own_batch, small_model, train, trained_alone

HOOKS: dict[str, Any] = {
    "allreduce": default_hooks.allreduce_hook,
    "fp16": default_hooks.fp16_compress_hook,
    # Under another name, because DDP admits the hook itself only with NCCL.
    "bf16": lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket),
    "fp16-wrapper": default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
    "noop": debugging_hooks.noop_hook,
}
BUILTIN = {"builtin-allreduce": BuiltinCommHookType.ALLREDUCE, "builtin-fp16": BuiltinCommHookType.FP16_COMPRESS}
TOLERANCE = {
    "allreduce": 1e-5,
    "builtin-allreduce": 1e-5,
    "fp16": 1e-2,
    "fp16-wrapper": 1e-2,
    "bf16": 5e-2,
    "builtin-fp16": 1e-2,
}


def register(model: nn.parallel.DistributedDataParallel, name: str) -> None:
    """Register the hook of the name."""
    if name in BUILTIN:
        model._register_builtin_comm_hook(BUILTIN[name])
    elif name == "power-sgd":
        state = power_sgd.PowerSGDState(
            None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1
        )
        model.register_comm_hook(state, power_sgd.powerSGD_hook)
    else:
        model.register_comm_hook(None, HOOKS[name])


def main(rank: int, size: int, *names: str) -> None:
    """Train with each hook."""
    for name in names:
        model = nn.parallel.DistributedDataParallel(small_model())
        register(model, name)
        torch.manual_seed(0)
        steps = 6 if name == "power-sgd" else 3
        losses = train(
            model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(s, rank, size) for s in range(steps)]
        )
        if name in TOLERANCE:
            assert_same(model.module, trained_alone(size), TOLERANCE[name])
        show(rank, name=name, losses=losses, weights=weights(model), tolerance=TOLERANCE.get(name, 1e-5))


if __name__ == "__main__":
    run(main)
