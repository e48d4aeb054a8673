"""Names of GPUs that mean the CPU: programs that are written for GPUs, on a machine without any."""

from __future__ import annotations

import inspect
import pickle
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed import device_mesh

import collshim
import collshim.torch as pretended
from tests.robustness.scripts import run_command

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="GPUs are pretended only on a machine without any")

CPU = torch.device("cpu")


@pytest.fixture
def gpus() -> Iterator[None]:
    """Two pretended GPUs."""
    with collshim.options(device="cpu", devices=2), collshim.stand_in("torch"):
        yield


BEYOND_THE_CPU = {"current_blas_handle", "current_solver_handle", "graph_pool_handle"}


def _without_arguments() -> Iterator[str]:
    for name, value in vars(torch.cuda).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith("torch.cuda"):
            parameters = inspect.signature(value).parameters.values()
            if all(
                each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
                for each in parameters
            ):
                yield name


@pytest.mark.parametrize("name", sorted({*_without_arguments()} - BEYOND_THE_CPU))
@pytest.mark.usefixtures("gpus")
def test_function_without_arguments_needs_no_gpu(name: str) -> None:
    getattr(pretended.cuda, name)()
    getattr(torch.cuda, name)()


@pytest.mark.usefixtures("gpus")
def test_gpu_has_the_memory_of_the_machine() -> None:
    free, total = torch.cuda.mem_get_info()
    assert free == total == torch.cuda.get_device_properties("cuda").total_memory > 2**20
    assert torch.cuda.memory_stats()["active_bytes.all.peak"] == torch.cuda.memory.max_memory_allocated() == 0


@pytest.mark.usefixtures("gpus")
def test_ranges_and_records_for_profilers_have_no_effect(tmp_path: Path) -> None:
    torch.cuda.nvtx.range_push("step")
    with torch.cuda.nvtx.range("forward {}", 1), torch.cuda.profiler.profile():
        torch.cuda.nvtx.mark("here")
    torch.cuda.nvtx.range_pop()
    torch.cuda.check_error(pretended.cuda.cudart().cudaProfilerStart())
    torch.cuda.memory._record_memory_history(max_entries=10)
    torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot"))
    assert pickle.loads((tmp_path / "snapshot").read_bytes())["segments"] == []


PLACES: dict[str, Callable[[Any], Any]] = {
    "cuda()": lambda tensor: tensor.cuda(),
    "cuda(1)": lambda tensor: tensor.cuda(1, non_blocking=True),
    "to a name": lambda tensor: tensor.to("cuda"),
    "to a number": lambda tensor: tensor.to(1),
    "to a device": lambda tensor: tensor.to(torch.device("cuda", 1)),
    "to a device and dtype": lambda tensor: tensor.to(device="cuda:1", dtype=torch.float64),
    "a new tensor": lambda tensor: torch.ones(1, device="cuda:1"),
    "a new tensor by number": lambda tensor: torch.ones(1, device=1),
    "a tensor like it": lambda tensor: torch.ones_like(tensor, device="cuda"),
    "in a device's block": lambda tensor: _in_block(),
    "of a module": lambda tensor: next(nn.Linear(1, 1).cuda().parameters()),
    "of a module by number": lambda tensor: next(nn.Linear(1, 1).to(1).parameters()),
    "pinned": lambda tensor: tensor.pin_memory(),
}


def _in_block() -> torch.Tensor:
    with torch.device("cuda"):
        return torch.ones(1)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.usefixtures("gpus")
def test_tensor_of_a_gpu_is_on_the_cpu(place: str) -> None:
    assert PLACES[place](torch.ones(1)).device == CPU


@pytest.mark.parametrize("device", ["cuda:2", 2])
@pytest.mark.usefixtures("gpus")
def test_gpu_beyond_the_last_is_refused(device: Any) -> None:
    for put in (torch.ones(1).to, torch.ones(1).cuda, nn.Linear(1, 1).to):
        with pytest.raises(RuntimeError, match="should have a number below 2"):
            put(device)


@pytest.mark.usefixtures("gpus")
def test_other_device_keeps_its_meaning() -> None:
    assert torch.ones(1, device="meta").device == torch.device("meta")


@pytest.mark.usefixtures("gpus")
def test_program_sees_gpus_and_a_library_none() -> None:
    assert (pretended.cuda.is_available(), pretended.cuda.device_count()) == (True, 2)
    assert (torch.cuda.is_available(), torch.cuda.device_count()) == (False, 0)
    torch.cuda.synchronize()
    assert torch.cuda.current_device() == 0, "it does not fail if a library calls it nevertheless"


@pytest.mark.usefixtures("gpus")
def test_current_gpu_is_the_one_that_was_set() -> None:
    pretended.cuda.set_device(1)
    with pretended.cuda.device(0):
        assert pretended.cuda.current_device() == 0
    assert pretended.cuda.current_device() == 1
    pretended.cuda.set_device("cuda:0")
    assert pretended.cuda.current_device() == 0
    with pytest.raises(RuntimeError, match="below 2"):
        pretended.cuda.set_device(2)
    with pretended.cuda.device(1), pretended.cuda.device(torch.device("cuda", 0)):
        assert pretended.cuda.current_device() == 0, "the number of a lone rank"


@pytest.mark.usefixtures("gpus")
def test_streams_and_events_do_nothing_but_measure() -> None:
    stream, start, end = pretended.cuda.Stream(), *(pretended.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    with pretended.cuda.stream(stream):
        tensor = torch.ones(1, device="cuda")
    end.record(stream)
    pretended.cuda.current_stream().wait_stream(stream)
    tensor.record_stream(stream)
    pretended.cuda.synchronize()
    stream.wait_event(stream.record_event())
    assert end.query()
    assert start.elapsed_time(end) > 0


@pytest.mark.usefixtures("gpus")
def test_gpus_random_numbers_are_the_cpus() -> None:
    pretended.cuda.manual_seed_all(5)
    state = pretended.cuda.get_rng_state()
    first = torch.rand(1)
    pretended.cuda.set_rng_state(state)
    assert torch.rand(1) == first == torch.rand(1, generator=torch.Generator().manual_seed(5))


@pytest.mark.usefixtures("gpus")
def test_checkpoint_is_loaded_to_a_gpu(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2)}, tmp_path / "checkpoint")
    for place in ("cuda:1", torch.device("cuda"), {"cuda:0": "cuda:1"}):
        assert torch.load(tmp_path / "checkpoint", map_location=place)["weight"].device == CPU


@pytest.mark.usefixtures("gpus")
def test_autocast_for_gpus_casts_on_the_cpu() -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.bfloat16


def test_end_of_the_block_restores_torch() -> None:
    owners = torch, nn.Module, torch.autocast, device_mesh.DeviceMesh, nn.parallel.DistributedDataParallel, torch.cuda
    names = ("load", "to", "__init__", "current_device")
    before = [owner.__dict__.get(name) for owner in owners for name in names]
    with collshim.options(device="cpu"), collshim.stand_in("torch"):
        pass
    assert [owner.__dict__.get(name) for owner in owners for name in names] == before
    assert pretended.cuda.is_available() is False
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1).cuda()


TRAINS = """
    import os, torch
    import torch.backends.cudnn as cudnn
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    cudnn.benchmark = True
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1).to(device), device_ids=[local], output_device=local)
    model(torch.full((1, 2), 2.0 * dist.get_rank()).cuda(local)).sum().backward()
    sharded = fully_shard(nn.Linear(2, 2).to(local), mesh=init_device_mesh("cuda", (2,)))
    sharded(torch.ones(1, 2, device=device)).sum().backward()
    dist.barrier(device_ids=[local])
    total = model.module.weight.grad.sum() + sharded.weight.grad.full_tensor().sum()
    os.write(1, f"{dist.get_backend()} {torch.cuda.device_count()} {total.item()}\\n".encode())
    dist.destroy_process_group()
"""


@pytest.mark.processes
def test_script_for_gpus_trains_unchanged(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(TRAINS))
    seen = run_command(tmp_path, "run", "--as", "torch", "--device", "cpu", "--no-prefix", "-n", "2", "script.py")
    assert seen.code == 0, seen
    assert sorted(seen.out.splitlines()) == ["nccl 2 6.0"] * 2


NORMALIZES = """
    import os, torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    for momentum in (0.1, None):
        torch.manual_seed(0)
        whole = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, momentum=momentum)).double()
        rows, weights = torch.randn(4 * size, 2, 2, 2).double(), torch.randn(4 * size, 3, 2, 2).double()
        alone = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3, momentum=momentum)).double()
        alone.load_state_dict(whole.state_dict())
        whole = nn.SyncBatchNorm.convert_sync_batchnorm(whole).cuda()
        parallel = DistributedDataParallel(whole, device_ids=[rank])
        own = slice(4 * rank, 4 * rank + 4)
        for _ in range(2):
            found, expected = parallel(rows[own].cuda()), alone(rows)
            (found * weights[own]).sum().backward()
            (expected * weights / size).sum().backward()
            torch.testing.assert_close(found, expected[own])
        for name, parameter in whole.named_parameters():
            torch.testing.assert_close(parameter.grad, alone.get_parameter(name).grad)
        for name, buffer in whole.named_buffers():
            torch.testing.assert_close(buffer, alone.get_buffer(name))
        torch.testing.assert_close(parallel.eval()(rows), alone.eval()(rows))
    dist.destroy_process_group()
"""


@pytest.mark.processes
def test_sync_batch_norm_normalizes_by_all_ranks_rows(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(NORMALIZES))
    seen = run_command(tmp_path, "run", "--as", "torch", "--device", "cpu", "-n", "2", "script.py")
    assert seen.code == 0, seen
