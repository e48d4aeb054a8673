"""mmengine: the functions of ``mmengine.dist``, and its DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mmengine.dist as mm
import torch
from mmengine.model import MMDistributedDataParallel

from tests.upstream.programs.ranks import run_named, weights
from tests.upstream.programs.training import own_batch, small_model, train


def collectives(rank: int, size: int) -> object:
    """Call each function that moves tensors."""
    own, found = torch.arange(4.0) + rank, dict[str, Any]()
    for op in ("sum", "mean", "max", "min", "product"):
        found[op] = own.clone()
        mm.all_reduce(found[op], op)
    found["gathered"], found["at the root"] = mm.all_gather(own), mm.gather(own, dst=0)
    found["sent"] = own.clone()
    mm.broadcast(found["sent"], src=size - 1)
    found["named"] = {"one": own.clone(), "other": torch.ones(2, 2) * rank}
    mm.all_reduce_dict(found["named"], "mean")
    parameters = [torch.full((3,), rank + 1.0), torch.full((2, 2), 2.0 * rank)]
    mm.all_reduce_params(parameters, coalesce=True, bucket_size_mb=1, op="mean")
    mm.barrier()
    return found | {"parameters": parameters}


def objects(rank: int, size: int) -> object:
    """Call each function that moves Python objects, and join the results of a test."""
    sent = ["from", rank]
    mm.broadcast_object_list(sent, src=size - 1)
    joined = mm.collect_results([10 * rank + row for row in range(3)], 3 * size - 1, device="cpu")
    assert isinstance(mm.sync_random_seed(), int)
    gathered = mm.all_gather_object({"rank": rank, "list": [1] * rank})
    return [sent, joined, gathered, mm.gather_object([rank] * rank, dst=0)]


def model(rank: int, size: int) -> object:
    """Train a small model."""
    own = small_model()
    wrapped = MMDistributedDataParallel(own)
    batches = [own_batch(step, rank, size) for step in range(3)]
    losses = train(wrapped, torch.optim.SGD(own.parameters(), lr=0.1), batches)
    return {"losses": losses, "weights": weights(own)}


USES: dict[str, Callable[[int, int], object]] = {"collectives": collectives, "objects": objects, "model": model}

if __name__ == "__main__":
    run_named(USES)
