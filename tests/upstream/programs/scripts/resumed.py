"""torchdata: a loader that goes on where another was stopped; each rank reads its own part."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from tests.upstream.programs.ranks import run_named

ROWS = 24


def _loader() -> StatefulDataLoader:
    rows = list(range(ROWS))
    sampler = StatefulDistributedSampler(rows, shuffle=True, seed=1)
    return StatefulDataLoader(rows, batch_size=2, sampler=sampler, num_workers=2)


def resumed(rank: int, size: int) -> object:
    """Stop after one batch, go on with another loader, and gather what all ranks have read."""
    first, second = _loader(), _loader()
    read = next(iter(first)).tolist()
    second.load_state_dict(first.state_dict())
    for batch in second:
        read += batch.tolist()
        dist.all_reduce(total := batch.sum())
        assert total > 0
    everything = [torch.zeros(ROWS // size, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(everything, torch.tensor(read))
    assert sorted(torch.cat(everything).tolist()) == list(range(ROWS))
    return read


if __name__ == "__main__":
    run_named({"resumed": resumed})
