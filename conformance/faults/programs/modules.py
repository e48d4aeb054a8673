"""Programs whose ranks train with torch's own modules: DistributedDataParallel, fully_shard, DTensor."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import torch
import torch._dynamo  # DistributedDataParallel imports it, which takes seconds
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor


class _Branches(nn.Module):
    """Two layers; an input uses the first one, or both."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, both: bool) -> torch.Tensor:
        y: torch.Tensor = self.first(x)
        return self.second(y) if both else y


def _data_parallel(**options: Any) -> nn.Module:
    torch.manual_seed(0)
    return nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), **options)


def _sharded() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    fully_shard(model)
    return model


def _rows(dist: Any) -> Any:
    """Return a DTensor whose rows are distributed over the ranks."""
    return distribute_tensor(
        torch.arange(18.0).view(6, 3), init_device_mesh("cpu", (dist.get_world_size(),)), [Shard(0)]
    )


def ddp_dead(dist: Any) -> None:
    """DDP: rank 1 is killed before its second backward pass of DistributedDataParallel.

    blame: 1
    dead: 1
    on: processes torch torch+detail
    """
    model = _data_parallel()
    for step in range(2):
        loss = model(torch.ones(2, 3)).sum()
        if dist.get_rank() == 1 and step == 1:
            os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory is short
        loss.backward()  # <- here


def ddp_dead_twin(dist: Any) -> None:
    """Every rank lives."""
    model = _data_parallel()
    for _ in range(2):
        model(torch.full((2, 3), float(dist.get_rank()))).sum().backward()
    gradients = [parameter.grad.tolist() for parameter in model.parameters() if parameter.grad is not None]
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, gradients)
    assert len(gradients) == 4
    assert all(one == gradients for one in found)


def ddp_late(dist: Any) -> None:
    """DDP: rank 2 starts a backward pass of DistributedDataParallel after the others' deadline has passed.

    blame: 2
    twin: ddp_dead_twin
    """
    model = _data_parallel()
    loss = model(torch.ones(2, 3)).sum()
    if dist.get_rank() == 2:
        time.sleep(2.4)  # the others have given up
    loss.backward()  # <- here


def ddp_metric(dist: Any) -> None:
    """DDP: rank 1 reduces a metric while the others' backward reduces gradients.

    blame: 1
    """
    model = _data_parallel()
    loss = model(torch.ones(2, 3)).sum()
    if dist.get_rank() == 1:
        dist.all_reduce(loss.detach())  # <- here
    loss.backward()


def ddp_metric_twin(dist: Any) -> None:
    """Every rank reduces the metric."""
    model = _data_parallel()
    loss = model(torch.ones(2, 3)).sum()
    dist.all_reduce(loss.detach())
    loss.backward()


def ddp_unused(dist: Any) -> None:
    """DDP: rank 1's batch uses one layer of DistributedDataParallel, so it reduces no gradients.

    blame: 1
    affected: 0 2
    """
    model = nn.parallel.DistributedDataParallel(_Branches())
    model(torch.ones(2, 3), dist.get_rank() != 1).sum().backward()  # <- here


def ddp_unused_twin(dist: Any) -> None:
    """DistributedDataParallel looks for unused layers."""
    model = nn.parallel.DistributedDataParallel(_Branches(), find_unused_parameters=True)
    model(torch.ones(2, 3), dist.get_rank() != 1).sum().backward()


def dtensor_missing(dist: Any) -> None:
    """DTensor: rank 2 does not gather a DTensor that the others gather.

    blame: 2
    affected: 0 1
    """
    rows = _rows(dist)
    if dist.get_rank() != 2:
        rows.full_tensor().sum().item()  # <- here


def dtensor_missing_twin(dist: Any) -> None:
    """Every rank reads the whole DTensor."""
    assert _rows(dist).full_tensor().sum().item() == 153.0


def dtensor_reduction(dist: Any) -> None:
    """DTensor: rank 2 treats as parts of a maximum what the others treat as parts of a sum.

    blame: 2
    """
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    part = Partial("max") if dist.get_rank() == 2 else Partial()
    DTensor.from_local(torch.ones(4), mesh, [part]).full_tensor().sum().item()  # <- here


def dtensor_reduction_twin(dist: Any) -> None:
    """One reduction."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parts = torch.full((4,), float(dist.get_rank()))
    assert DTensor.from_local(parts, mesh, [Partial("max")]).full_tensor().tolist() == [2.0] * 4


def sharded_late(dist: Any) -> None:
    """fully_shard: rank 1 starts a backward pass of fully_shard after the others' deadline has passed.

    blame: 1
    """
    model = _sharded()
    loss = model(torch.ones(2, 3)).sum()
    if dist.get_rank() == 1:
        time.sleep(2.4)  # the others have given up
    loss.backward()  # <- here


def sharded_late_twin(dist: Any) -> None:
    """Every rank is in time."""
    model = _sharded()
    model(torch.ones(2, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def sharded_missing(dist: Any) -> None:
    """fully_shard: rank 2 has one batch fewer than the others for a model of fully_shard.

    blame: 2
    affected: 0 1
    twin: sharded_late_twin
    """
    model = _sharded()
    for _ in range(1 if dist.get_rank() == 2 else 2):
        model(torch.ones(2, 3)).sum().backward()  # <- here
