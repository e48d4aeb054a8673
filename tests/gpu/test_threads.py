"""Four ranks as threads on one GPU: they read each other's tensors, whatever streams wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor

import collshim
from collshim import Communicator
from tests.gpu.hardware import DEVICE, busy, require_gpu
from tests.gpu.scenarios import ALL, DTYPES, MOVES, NCCL_DTYPES, SUMS, describe, given, reduced, results

require_gpu()

SIZE = 4
ROWS = 1 << 14


@pytest.fixture(autouse=True)
def _the_gpu_is_at_rest() -> Iterator[None]:
    yield
    torch.cuda.synchronize()


def among_threads(fn: Callable[..., Any], *args: Any) -> list[Any]:
    with collshim.options(timeout=30.0):
        return collshim.launch(lambda: fn(collshim.current().communicator, *args), SIZE, timeout=200)


def results_by_name(
    comm: Communicator, scenarios: dict[str, Any], dtype: torch.dtype, device: torch.device | str
) -> Any:
    x, parts = given(dtype, comm, device)
    return {
        name: describe(results(scenario(comm, x, parts)), torch.device(device).type)
        for name, scenario in scenarios.items()
    }


def reduced_on(comm: Communicator, dtype: torch.dtype, device: torch.device | str) -> Any:
    return describe(reduced(comm, *given(dtype, comm, device), dtype), torch.device(device).type)


def dtype_names(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_names)
def test_data_moves_as_between_cpu_tensors(dtype: torch.dtype) -> None:
    assert among_threads(results_by_name, MOVES, dtype, DEVICE) == among_threads(results_by_name, MOVES, dtype, "cpu")


@pytest.mark.parametrize("dtype", NCCL_DTYPES, ids=dtype_names)
def test_sums_match_cpu_tensors(dtype: torch.dtype) -> None:
    assert among_threads(results_by_name, SUMS, dtype, DEVICE) == among_threads(results_by_name, SUMS, dtype, "cpu")


@pytest.mark.parametrize("dtype", DTYPES, ids=dtype_names)
def test_every_reduce_operation(dtype: torch.dtype) -> None:
    assert among_threads(reduced_on, dtype, DEVICE) == among_threads(reduced_on, dtype, "cpu")


def late(comm: Communicator, name: str) -> list[Any]:
    """Each rank uses a stream of its own, which writes the input late, and later on some ranks than on others."""
    with torch.cuda.stream(torch.cuda.Stream()):
        x, parts = torch.zeros(ROWS, 3, device=DEVICE), torch.zeros(SIZE, ROWS, 3, device=DEVICE)
        busy(100_000_000 * (1 + comm.rank))
        x.fill_(comm.rank + 1.0)
        parts.fill_(comm.rank + 1.0)
        return [tensor.clone() for tensor in _tensors(results(ALL[name](comm, x, parts)))]


def in_time(comm: Communicator, name: str) -> list[Any]:
    x, parts = torch.full((ROWS, 3), comm.rank + 1.0), torch.full((SIZE, ROWS, 3), comm.rank + 1.0)
    return _tensors(results(ALL[name](comm, x, parts)))


def _tensors(found: Any) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    return [tensor for item in found for tensor in _tensors(item)] if isinstance(found, list | tuple) else []


@pytest.mark.parametrize("name", sorted(set(ALL) - {"barrier"}))
def test_ranks_follow_streams_of_each_other(name: str) -> None:
    """At the ranks' first use of the kernels the host may be delayed, so the race is run twice."""
    wanted = [[tensor.unique().tolist() for tensor in rank] for rank in among_threads(in_time, name)]
    for _ in range(2):
        found = among_threads(late, name)
        torch.cuda.synchronize()
        assert [[tensor.unique().tolist() for tensor in rank] for rank in found] == wanted


def in_turns(comm: Communicator) -> float:
    """Make many calls whose inputs and results are dropped at once, so that their memory is reused."""
    with torch.cuda.stream(torch.cuda.Stream()):
        wrong = torch.zeros((), device=DEVICE)
        for turn in range(100):
            x = torch.full((ROWS, 3), float(comm.rank + turn), device=DEVICE)
            work = comm.all_reduce(x) if turn % 2 else comm.all_gather(x)
            del x
            junk = torch.full((ROWS, 3), -1.0, device=DEVICE)
            busy(200_000 * ((turn + comm.rank) % SIZE))
            found = work.wait()
            del work
            mean = (found.sum(0) if found.dim() == 3 else found) / SIZE
            wrong += (mean != turn + (SIZE - 1) / 2).any() + (junk != -1).any()
        return float(wrong)


def test_memory_read_by_a_peer_is_not_reused() -> None:
    assert among_threads(in_turns) == [0.0] * SIZE


def waited_elsewhere(comm: Communicator, posted: Barrier) -> list[float]:
    """Rank 0, on a busy stream, does the work of all; rank 1 drops its input after a wait on another stream."""
    others = torch.cuda.Stream()
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.full((ROWS, 3), float(comm.rank), device=DEVICE)
        if comm.rank == 0:
            busy()
            posted.wait()
        work = comm.all_gather(x)
        if comm.rank != 0:
            posted.wait()
        with torch.cuda.stream(others):
            found = work.wait()
        if comm.rank == 1:
            del x, work
            torch.full((ROWS, 3), -1.0, device=DEVICE)
        others.synchronize()
        return [float(part.mean()) for part in found]


def test_memory_is_not_reused_after_another_streams_wait() -> None:
    assert among_threads(waited_elsewhere, Barrier(SIZE, timeout=30)) == [[float(each) for each in range(SIZE)]] * SIZE


def far_ahead(comm: Communicator, name: str) -> bool:
    with torch.cuda.stream(torch.cuda.Stream()):
        x, parts = torch.ones(ROWS, 3, device=DEVICE), torch.ones(SIZE, ROWS, 3, device=DEVICE)
        for _ in range(3):
            results(ALL[name](comm, x, parts))
        torch.cuda.synchronize()
        comm.barrier().wait()
        before = busy()
        results(ALL[name](comm, x, parts))
        return not before.query()


@pytest.mark.parametrize("name", sorted(ALL))
def test_host_does_not_wait(name: str) -> None:
    assert among_threads(far_ahead, name) == [True] * SIZE


def disagreeing(comm: Communicator) -> list[Any]:
    x = torch.ones(3, device=DEVICE, dtype=torch.float64 if comm.rank == 1 else torch.float32)
    found: list[Any] = []
    for given_x in (x, torch.ones(3, device="cpu" if comm.rank == 2 else DEVICE)):
        try:
            comm.all_reduce(given_x).wait()
        except collshim.MismatchError as error:
            found.append(str(error).splitlines()[0])
    return [*found, comm.all_reduce(torch.ones(3, device=DEVICE)).wait().tolist()]


def test_calls_work_after_a_mismatch() -> None:
    told_all = [
        "all_reduce: ranks disagree on dtype: rank 1 has float64, the others float32",
        "all_reduce: ranks disagree on device: rank 2 has cpu, the others cuda",
        [4.0, 4.0, 4.0],
    ]
    assert among_threads(disagreeing) == [told_all] * SIZE


def gradients(comm: Communicator, device: torch.device | str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    x, parts = given(torch.float64, comm, device)
    for name, scenario in {
        "all_reduce": SUMS["all_reduce"],
        **{n: MOVES[n] for n in ("all_gather", "all_to_all")},
    }.items():
        leaves = [x.clone().requires_grad_(), parts.clone().requires_grad_()]
        (results(scenario(comm, *leaves))[0] ** 2 * (comm.rank + 1)).sum().backward()
        found[name] = [None if leaf.grad is None else describe(leaf.grad, torch.device(device).type) for leaf in leaves]
    return found


def test_gradients_match_cpu_tensors() -> None:
    assert among_threads(gradients, DEVICE) == among_threads(gradients, "cpu")
