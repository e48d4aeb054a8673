"""Habits of scripts: other ways to make the default group, polling, leaving without destroying, and caught errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from tests.upstream.programs.ranks import LIMIT, register, show, weights
from tests.upstream.programs.training import own_batch, small_model, train

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def _total() -> float:
    tensor = torch.tensor([RANK + 1.0])
    dist.all_reduce(tensor)
    return tensor.item()


def per_device(backend: str) -> object:
    """Name the backend for CPU tensors."""
    dist.init_process_group(f"cpu:{backend}", timeout=LIMIT)
    total = _total()
    dist.destroy_process_group()
    return total


def with_file(backend: str) -> object:
    """Meet in a file, and once more in another one."""
    totals = []
    for life in range(2):
        name = f"file://{os.environ['TMPDIR']}/meeting-{life}"
        dist.init_process_group(backend, init_method=name, rank=RANK, world_size=SIZE, timeout=LIMIT)
        totals.append(_total())
        dist.barrier()
        dist.destroy_process_group()
    return totals


def with_store(backend: str) -> object:
    """Meet in a store that the script makes, and use it."""
    store = dist.FileStore(f"{os.environ['TMPDIR']}/store", SIZE)
    dist.init_process_group(backend, store=store, rank=RANK, world_size=SIZE, timeout=LIMIT)
    total = _total()
    store.add("count", 1)
    dist.barrier()
    count = store.add("count", 0)
    dist.destroy_process_group()
    return [total, count]


def polled(backend: str) -> object:
    """Ask a work whether it is complete, until it is."""
    dist.init_process_group(backend, timeout=LIMIT)
    tensor = torch.full((1000,), float(RANK))
    work = dist.all_reduce(tensor, async_op=True)
    assert work is not None
    while not work.is_completed():
        pass
    dist.destroy_process_group()
    return tensor[0]


def kept(backend: str) -> object:
    """Leave the default group and another one to the end of the process."""
    dist.init_process_group(backend, timeout=LIMIT)
    group = dist.new_group(list(range(SIZE)))
    tensor = torch.tensor([float(RANK)])
    dist.all_reduce(tensor, group=group)
    return [_total(), tensor.item()]


def other_shapes(backend: str) -> object:
    """Catch the error of DistributedDataParallel for models of other shapes."""
    dist.init_process_group(backend, timeout=LIMIT)
    told = False
    try:
        DistributedDataParallel(nn.Linear(4 + RANK, 2))
    except RuntimeError:
        told = True
    assert told
    return told


class Part(nn.Module):
    """A model that does not use one of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.used(inputs))


def unused(backend: str) -> object:
    """Catch the error for a parameter without a gradient; with TORCH_DISTRIBUTED_DEBUG it names the parameter."""
    dist.init_process_group(backend, timeout=LIMIT)
    model = DistributedDataParallel(Part())
    told = ""
    try:
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, RANK, SIZE) for step in range(2)])
    except RuntimeError as error:
        told = str(error)
    assert ("unused.weight" in told) == (dist.get_debug_level() != dist.DebugLevel.OFF), told
    return told.count("unused.")


def in_a_group(backend: str) -> object:
    """Train in pairs, each over its own group, with a short limit."""
    dist.init_process_group(backend, timeout=LIMIT)
    pairs = [dist.new_group([first, first + 1], timeout=timedelta(seconds=50)) for first in range(0, SIZE, 2)]
    model = DistributedDataParallel(small_model(), process_group=pairs[RANK // 2])
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), [own_batch(step, RANK, SIZE) for step in range(3)])
    found = weights(model)
    dist.barrier()
    dist.destroy_process_group()
    return found


def missed(backend: str) -> object:
    """Catch the error of a group whose limit is over, because rank 1 does not come."""
    dist.init_process_group(backend, timeout=LIMIT)
    group = dist.new_group(list(range(SIZE)), timeout=timedelta(seconds=3))
    told = False
    if RANK != 1:
        try:
            dist.all_reduce(torch.ones(1), group=group)
        except RuntimeError:
            told = True
    dist.barrier()
    assert told or RANK == 1
    return told


USES: dict[str, Callable[[str], object]] = {
    "per-device": per_device,
    "with-file": with_file,
    "with-store": with_store,
    "polled": polled,
    "kept": kept,
    "other-shapes": other_shapes,
    "unused": unused,
    "in-a-group": in_a_group,
    "missed": missed,
}


def main() -> None:
    """Run each use."""
    register(sys.argv[1])
    for name in sys.argv[2:]:
        show(RANK, name=name, found=USES[name](sys.argv[1]))


if __name__ == "__main__":
    main()
