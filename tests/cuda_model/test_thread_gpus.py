"""Ranks that are threads, on several GPUs of one machine, match threads on the CPU bitwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim
import collshim.oneflow as flow
import collshim.torch.distributed as dist
from collshim import Communicator
from collshim.oneflow.nn.parallel import DistributedDataParallel
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.scenarios import POSTS, differentiated, tensors
from tests.engine.worlds import attempt
from tests.gpu.hardware import busy
from tests.gpu.scenarios import ALL, DTYPES, MOVES, NCCL_DTYPES, SUMS, describe, given, reduced, results

require_model()

pytestmark = pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match:UserWarning")

SIZE = 4
ROWS = 1 << 12
OWN, SHARED = [0, 1, 2, 3], [0, 1, 2, 0]
"""The GPU of each rank."""


def among(gpus: list[int] | None, fn: Callable[..., Any], *args: Any) -> list[Any]:
    """Run ``fn(communicator, *args)`` on ranks that are threads; None as GPUs: on the CPU."""

    def run() -> Any:
        comm = collshim.current().communicator
        if gpus is not None:
            torch.cuda.set_device(gpus[comm.rank])
        return fn(comm, *args)

    with collshim.options(timeout=20.0):
        return list(collshim.launch(run, SIZE, timeout=200))


def place(gpus: list[int] | None) -> str:
    return "cpu" if gpus is None else "cuda"


def name_of(value: Any) -> str:
    return str(value).removeprefix("torch.")


def by_name(comm: Communicator, scenarios: dict[str, Any], dtype: torch.dtype, kind: str) -> dict[str, Any]:
    x, parts = given(dtype, comm, kind)
    found = {name: results(scenario(comm, x, parts)) for name, scenario in scenarios.items()}
    if kind == "cuda":
        assert {tensor.device for tensor in tensors(list(found.values()))} == {x.device}
    return {name: describe(value, kind) for name, value in found.items()}


@pytest.mark.parametrize("gpus", [OWN, SHARED], ids=["one each", "two on one"])
@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_data_moves_as_between_cpu_tensors(dtype: torch.dtype, gpus: list[int]) -> None:
    assert among(gpus, by_name, MOVES, dtype, "cuda") == among(None, by_name, MOVES, dtype, "cpu")


@pytest.mark.parametrize("gpus", [OWN, SHARED], ids=["one each", "two on one"])
@pytest.mark.parametrize("dtype", NCCL_DTYPES, ids=name_of)
def test_sums_match_cpu_tensors(dtype: torch.dtype, gpus: list[int]) -> None:
    assert among(gpus, by_name, SUMS, dtype, "cuda") == among(None, by_name, SUMS, dtype, "cpu")


def every_operation(comm: Communicator, dtype: torch.dtype, kind: str) -> Any:
    return describe(reduced(comm, *given(dtype, comm, kind), dtype), kind)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_reduce_operation(dtype: torch.dtype) -> None:
    assert among(OWN, every_operation, dtype, "cuda") == among(None, every_operation, dtype, "cpu")


def late(comm: Communicator, name: str, kind: str) -> list[Any]:
    """Each rank uses a stream of its own, which writes the input late; the result is used there, and dropped."""
    with torch.cuda.stream(torch.cuda.Stream() if kind == "cuda" else None):
        x, parts = torch.zeros(ROWS, 3, device=kind), torch.zeros(SIZE, ROWS, 3, device=kind)
        if kind == "cuda":
            busy(30_000_000 * (1 + comm.rank))
        x.fill_(comm.rank + 1.0)
        parts.fill_(comm.rank + 1.0)
        found = tensors(results(ALL[name](comm, x, parts)))
        x.fill_(-1.0)
        parts.fill_(-1.0)
        kept = [tensor.clone() for tensor in found]
        del found, x, parts
        junk = [torch.full((SIZE, ROWS, 3), -2.0, device=kind) for _ in range(2)]
        del junk
    if kind == "cuda":
        torch.cuda.synchronize()
    return [tensor.unique().tolist() for tensor in kept]


@pytest.mark.parametrize("name", sorted(set(ALL) - {"barrier"}))
def test_ranks_follow_streams_of_each_other(name: str) -> None:
    with model.setting("busy", 0.1):
        assert among(OWN, late, name, "cuda") == among(None, late, name, "cpu")


@pytest.mark.parametrize("name", POSTS)
def test_gradients_match_cpu_tensors(name: str) -> None:
    with collshim.options(timeout=20.0):
        assert among(OWN, differentiated, name, "cuda") == among(None, differentiated, name, "cpu")


def given_nothing(comm: Communicator) -> list[str]:
    """Return the devices of received tensors, which are the rank's own GPU."""
    own = torch.full((3,), 7.0, device="cuda") if comm.rank == 2 else None
    first = comm.broadcast(own, 2).wait()
    second: Tensor = comm.scatter(None if own is None else own.expand(SIZE, 3), 2).wait()
    third = comm.recv(3).wait() if comm.rank == 0 else None
    if comm.rank == 3:
        comm.send(torch.ones(2, device="cuda"), 0).wait()
    return [str(tensor.device) for tensor in (first, second, third) if tensor is not None]


def test_received_tensor_is_on_the_ranks_own_gpu() -> None:
    found = among(OWN, given_nothing)
    assert found == [[f"cuda:{rank}"] * (3 if rank == 0 else 2) for rank in range(SIZE)]


def disagreeing(comm: Communicator) -> list[Any]:
    shape = attempt(lambda: comm.all_reduce(torch.ones(3 + comm.rank // 3, device="cuda")).wait())
    where = attempt(lambda: comm.all_reduce(torch.ones(3, device="cpu" if comm.rank == 2 else "cuda")).wait())
    told_all = [outcome.text.splitlines()[0] for outcome in (shape, where)]
    return [*told_all, comm.all_reduce(torch.ones(3, device="cuda")).wait().tolist()]


def test_calls_work_after_a_mismatch() -> None:
    expected = [
        "all_reduce: ranks disagree on shape: rank 3 has (4,), the others (3,)",
        "all_reduce: ranks disagree on device: rank 2 has cpu, the others cuda",
        [4.0] * 3,
    ]
    assert among(OWN, disagreeing) == [expected] * SIZE


def missing(comm: Communicator, told_all: threading.Barrier) -> str:
    found = "" if comm.rank == 1 else attempt(lambda: comm.all_reduce(torch.ones(3, device="cuda")).wait(1.0)).text
    told_all.wait(20.0)
    return found


def test_missing_rank_is_named() -> None:
    for rank, text in enumerate(among(OWN, missing, threading.Barrier(SIZE))):
        assert rank == 1 or "1 of 4 ranks did not arrive: rank 1" in text


def of_torch(comm: Communicator) -> Any:
    dist.init_process_group("nccl")
    x = torch.ones(3, device="cuda") * (dist.get_rank() + 1)
    dist.all_reduce(x)
    parts = [torch.empty_like(x) for _ in range(SIZE)]
    dist.all_gather(parts, x, group=dist.new_group([0, 1, 2, 3]))
    dist.destroy_process_group()
    return str(x.device), x.tolist(), [part[0].item() for part in parts]


def test_torch_adapter_with_a_device_per_rank() -> None:
    assert among(OWN, of_torch) == [(f"cuda:{rank}", [10.0] * 3, [10.0] * 4) for rank in range(SIZE)]


def of_oneflow(comm: Communicator) -> Any:
    """Use OneFlow's "cuda", which is the rank's own GPU without any setting."""
    x = flow.ones(3, device="cuda") * (flow.env.get_rank() + 1)
    flow.comm.all_reduce(x)
    module = DistributedDataParallel(flow.nn.Linear(1, 1, bias=False).to("cuda"))
    module(flow.ones(1, 1, device="cuda") * (flow.env.get_rank() + 1)).sum().backward()
    return str(x.device), x.numpy().tolist(), module.weight.grad.item(), str(module.weight.device)


def test_oneflow_cuda_is_the_gpu_of_each_rank() -> None:
    with collshim.options(timeout=20.0):
        found = collshim.launch(lambda: of_oneflow(collshim.current().communicator), SIZE, timeout=200)
    assert found == [(f"cuda:{rank}", [10.0] * 3, 2.5, f"cuda:{rank}") for rank in range(SIZE)]
