"""DistributedDataParallel, fully_shard and DTensor of unmodified torch: ten steps over collshim match gloo."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import pytest
import torch
import torch.distributed as torchs
from torch import Tensor, nn

import collshim
import collshim.torch.distributed as dist

pytestmark = pytest.mark.processes

STEPS = 10
PATIENCE = timedelta(seconds=60)


SEEDED = threading.Lock()
"""Held while torch's generator is seeded, which ranks that are threads share."""


def _model() -> nn.Sequential:
    with SEEDED:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def _batch(step: int, rank: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(5, 8, generator=generator), torch.randn(5, 4, generator=generator)


def _train(model: nn.Module, rank: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        inputs, wanted = _batch(step, rank)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()


def _whole(model: nn.Module) -> list[Tensor]:
    parameters: list[Any] = list(model.parameters())
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in parameters]


def _data_parallel(rank: int) -> list[Tensor]:
    model = nn.parallel.DistributedDataParallel(_model())
    _train(model, rank)
    return _whole(model)


def _with_unused_parameters_and_buffers(rank: int) -> list[Tensor]:
    unused: Any = nn.utils.skip_init(nn.Linear, 3, 3)
    for parameter in unused.parameters():
        nn.init.ones_(parameter)
    model = nn.ModuleList([*_model(), nn.BatchNorm1d(8), unused])

    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, x: Tensor) -> Tensor:
            for part in (model[5], *list(model)[:5]):
                x = part(x)
            return x

    parallel = nn.parallel.DistributedDataParallel(Partly(), find_unused_parameters=True)
    _train(parallel, rank)
    return _whole(parallel) + [buffer.clone() for buffer in parallel.buffers()]


def _fully_sharded(rank: int) -> list[Tensor]:
    from torch.distributed.fsdp import fully_shard

    model = _model()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    _train(model, rank)
    return _whole(model)


def _tensor_parallel(rank: int) -> list[Tensor]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (torchs.get_world_size(),))
    model = parallelize_module(_model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    _train(model, 0)
    return _whole(model)


def _tensors(rank: int) -> list[Tensor]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (torchs.get_world_size(),))
    rows: Any = distribute_tensor(torch.arange(12.0).view(4, 3), mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    found = [columns, rows @ columns.T, rows.sum(), rows.redistribute(mesh, [Replicate()])]
    return [columns.to_local(), *[tensor.full_tensor() for tensor in found]]


LESSONS: dict[str, Callable[[int], list[Tensor]]] = {
    "DistributedDataParallel": _data_parallel,
    "DistributedDataParallel with unused parameters and buffers": _with_unused_parameters_and_buffers,
    "tensor parallel": _tensor_parallel,
    "DTensor": _tensors,
}
if hasattr(torch.cpu.Stream(), "record_event"):  # without it torch 2.6 shards nothing on CPUs, not even over gloo
    LESSONS["fully_shard"] = _fully_sharded


def _by_gloo(where: str, rank: int, size: int) -> None:
    store = torchs.FileStore(where, size)
    torchs.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)


def _by_torch(where: str, rank: int, size: int) -> None:
    torchs.init_process_group("collshim", rank=rank, world_size=size, store=torchs.HashStore())


def _by_the_adapter(where: str, rank: int, size: int) -> None:
    dist.init_process_group("gloo")


STARTS: dict[str, Callable[[str, int, int], None]] = {
    "gloo": _by_gloo,
    "torch": _by_torch,
    "the adapter": _by_the_adapter,
}
Learnt = dict[str, dict[str, list[Tensor]]]  # by the maker of the default group, by lesson


def _taught(where: str, starts: list[str]) -> Learnt:
    """Return the parameters that this rank has learnt."""
    found, world = {}, collshim.current()
    for start in starts:
        STARTS[start](where, world.rank, world.size)
        found[start] = {name: lesson(world.rank) for name, lesson in LESSONS.items()}
        torchs.destroy_process_group()
    return found


def _launched(
    folder: pytest.TempPathFactory, size: int, starts: list[str], ranks: Literal["threads", "processes"] = "processes"
) -> list[Learnt]:
    where = str(folder.mktemp("store") / "store")
    with collshim.options(timeout=60):
        return collshim.launch(_taught, size, ranks=ranks, args=(where, starts), timeout=200)


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Learnt]:
    return _launched(tmp_path_factory, 2, list(STARTS))


@pytest.fixture(scope="module")
def two_threads(tmp_path_factory: pytest.TempPathFactory) -> list[Learnt]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as in launched processes: the number determines the order of additions within a rank
    try:
        return _launched(tmp_path_factory, 2, ["the adapter"], "threads")
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Learnt]:
    return _launched(tmp_path_factory, 4, ["gloo", "torch"])


@pytest.mark.parametrize(
    ("ranks", "start"), [("processes", "torch"), ("processes", "the adapter"), ("threads", "the adapter")]
)
@pytest.mark.parametrize("lesson", LESSONS)
def test_two_ranks_match_gloo_bitwise(
    two_ranks: list[Learnt], two_threads: list[Learnt], lesson: str, ranks: str, start: str
) -> None:
    """The sum of two addends has one order."""
    for rank, learnt in enumerate(two_ranks if ranks == "processes" else two_threads):
        ours, theirs = learnt[start][lesson], two_ranks[rank]["gloo"][lesson]
        assert len(ours) == len(theirs) > 0
        assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("lesson", LESSONS)
def test_four_ranks_learn_as_over_gloo(four_ranks: list[Learnt], lesson: str) -> None:
    """gloo adds along a ring, the engine adds small arrays in rank order."""
    for learnt in four_ranks:
        ours, theirs = learnt["torch"][lesson], learnt["gloo"][lesson]
        assert len(ours) == len(theirs) > 0
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_training_step_changes_the_model(two_ranks: list[Learnt]) -> None:
    before = _whole(_model())
    for name in LESSONS.keys() & {"DistributedDataParallel", "fully_shard", "tensor parallel"}:
        after = two_ranks[0]["torch"][name]
        assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
