"""torchsnapshot and monai: snapshots of all ranks in one folder; metrics over batches of different lengths."""

from __future__ import annotations

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.upstream.programs.ranks import run_named, weights


def snapshot(rank: int, size: int) -> object:
    """Take a snapshot, and one in the background; restoring gives each rank its own state."""
    import torchsnapshot

    box = [tempfile.mkdtemp(dir=os.environ["TMPDIR"]) if rank == 0 else None]
    dist.broadcast_object_list(box, 0)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(5, 3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 5)).sum().backward()
    optimizer.step()
    own = torchsnapshot.StateDict(step=rank + 1)
    state = {"model": model, "optimizer": optimizer, "own": own}
    before = weights(model)
    taken = torchsnapshot.Snapshot.take(f"{box[0]}/one", state, replicated=["model/**"])
    later = torchsnapshot.Snapshot.async_take(f"{box[0]}/two", state, replicated=["model/**"]).wait()
    for one in (taken, later):
        nn.init.zeros_(model.module.weight)
        own["step"] = 0
        one.restore(state)
        assert (own["step"], weights(model)) == (rank + 1, before)
    return before


def metrics(rank: int, size: int) -> object:
    """Gather tensors and texts of different lengths, and a mean of all ranks' samples."""
    from monai.metrics import CumulativeAverage, DiceMetric
    from monai.utils.dist import evenly_divisible_all_gather, string_list_all_gather

    rows = evenly_divisible_all_gather(torch.full((rank + 1, 2), float(rank)))
    assert rows[:, 0].tolist() == [float(other) for other in range(size) for _ in range(other + 1)]
    texts = string_list_all_gather([f"rank {rank}"] * (rank + 1))
    assert texts == [f"rank {other}" for other in range(size) for _ in range(other + 1)]
    mean = CumulativeAverage()
    mean.append(torch.tensor(float(rank)), rank + 1)
    dice = DiceMetric()
    generator = torch.Generator().manual_seed(rank)
    for _ in range(rank + 1):
        dice(*torch.randint(0, 2, (2, 1, 2, 8, 8), generator=generator).float())
    expected = sum(other * (other + 1) for other in range(size)) / sum(range(1, size + 1))
    assert abs(float(mean.aggregate()) - expected) < 1e-6
    return [mean.aggregate(), dice.aggregate()]


run_named({"snapshot": snapshot, "metrics": metrics})
