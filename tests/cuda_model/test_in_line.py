"""Calls of collshim.torch over NCCL that are waited for at once: they run in order in the caller's own stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributed import ReduceOp

import collshim.torch.distributed as dist
from collshim import Communicator
from collshim.calls.collective import ALL_REDUCE
from collshim.work import COMPLETE
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import DEADLINE, SHORT, SLACK, Setting, among_gpus, device, values
from tests.engine.call_counts import count
from tests.engine.worlds import attempt

require_model()

NUMBERS = 6
DEFAULT = Setting(checks=None)
BRIEF = Setting(checks=None, wait=SHORT.wait, rests=SHORT.rests)

Function = Callable[[Tensor, Tensor, bool], Any]
"""A call with a rank's tensor, a row for every rank, and whether to return at once."""


def _lists(whole: Tensor) -> list[Tensor]:
    return list(whole.unbind(0))


FUNCTIONS: dict[str, Function] = {
    "all_reduce": lambda x, whole, later: dist.all_reduce(x, async_op=later),
    "all_reduce of an average": lambda x, whole, later: dist.all_reduce(x, ReduceOp.AVG, async_op=later),
    "reduce": lambda x, whole, later: dist.reduce(x, 1, async_op=later),
    "broadcast": lambda x, whole, later: dist.broadcast(x, 1, async_op=later),
    "all_gather_single": lambda x, whole, later: dist.all_gather_single(whole, x, async_op=later),
    "all_gather": lambda x, whole, later: dist.all_gather(_lists(whole), x, async_op=later),
    "reduce_scatter_single": lambda x, whole, later: dist.reduce_scatter_single(x, whole, async_op=later),
    "reduce_scatter": lambda x, whole, later: dist.reduce_scatter(x, _lists(whole), async_op=later),
    "gather": lambda x, whole, later: dist.gather(
        x, _lists(whole) if dist.get_rank() == 1 else None, 1, async_op=later
    ),
    "scatter": lambda x, whole, later: dist.scatter(
        x, _lists(whole) if dist.get_rank() == 1 else None, 1, async_op=later
    ),
    "all_to_all_single": lambda x, whole, later: dist.all_to_all_single(whole, whole.clone(), async_op=later),
    "all_to_all": lambda x, whole, later: dist.all_to_all(_lists(whole), _lists(whole.clone()), async_op=later),
}
NUMERIC = (torch.float32, torch.bfloat16, torch.int32, torch.int16)


def _dtypes(name: str) -> tuple[torch.dtype, ...]:
    return NUMERIC if "average" in name else (*NUMERIC, torch.bool)


def _given(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    rank, size = dist.get_rank(), dist.get_world_size()
    numbers = torch.arange(size * NUMBERS, device=device()).view(size, NUMBERS) + 1 + 7 * rank
    return numbers[rank].to(dtype), (numbers % 5).to(dtype)


def beside_async(comm: Communicator, name: str) -> list[tuple[str, bool]]:
    """Compare three equal calls in a row, on a stream of their own, with ``async_op``."""
    dist.init_process_group("nccl")
    found = list[tuple[str, bool]]()
    with torch.cuda.stream(torch.cuda.Stream()):
        for dtype in _dtypes(name):
            x, whole = _given(dtype)
            FUNCTIONS[name](x, whole, True).wait()
            wanted = [x.tolist(), whole.tolist()]
            for _ in range(3):
                x, whole = _given(dtype)
                assert FUNCTIONS[name](x, whole, False) is None
                found.append((str(dtype), [x.tolist(), whole.tolist()] == wanted))
        torch.cuda.synchronize()
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_result_matches_a_call_waited_for_later(name: str) -> None:
    for found in values(among_gpus(beside_async, 3, name, setting=DEFAULT)):
        assert len(found) == 3 * len(_dtypes(name))
        assert [dtype for dtype, same in found if not same] == []


def dropped(comm: Communicator, name: str) -> None:
    """Drop the operands at once, and reuse their memory."""
    dist.init_process_group("nccl")
    for _ in range(4):
        x, whole = _given(torch.float32)
        shapes = x.shape, whole.shape
        FUNCTIONS[name](x, whole, False)
        del x, whole
        junk = [torch.full(shape, -1.0, device=device()) for shape in shapes for _ in range(2)]
        del junk
    torch.cuda.synchronize()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dropped_memory_is_not_reused_too_early(name: str) -> None:
    values(among_gpus(dropped, 2, name, setting=DEFAULT))


def of_no_work(comm: Communicator) -> tuple[bool, int]:
    dist.init_process_group("nccl")
    x = torch.ones(NUMBERS, device=device())
    dist.all_reduce(x)
    is_complete = comm.repeat_by_plan(ALL_REDUCE, x, x, "sum", waits=True) is COMPLETE
    return is_complete, min(count(lambda: dist.all_reduce(x)).calls for _ in range(5))


def test_repeated_call_completes_when_posted_with_few_calls() -> None:
    for is_complete, calls in values(among_gpus(of_no_work, 2, setting=DEFAULT)):
        assert is_complete
        assert calls <= 12


def captured(comm: Communicator) -> list[float]:
    dist.init_process_group("nccl")
    x, graph = torch.ones(NUMBERS, device=device()), torch.cuda.CUDAGraph()
    for _ in range(2):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    comm.barrier().wait()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream(), capture_error_mode="thread_local"):
        dist.all_reduce(x)
        x += 1
    x.fill_(1.0)
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    comm.barrier().wait()
    found: list[float] = x.unique().tolist()
    return found


def test_captured_call_runs_with_each_replay() -> None:
    assert values(among_gpus(captured, 2, setting=DEFAULT)) == [[(2 + 1) * 2 + 1]] * 2


def during_a_capture(comm: Communicator) -> bool:
    """The calls before the capture are watched while their stream is captured."""
    dist.init_process_group("nccl")
    own, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(own):
        x = torch.ones(NUMBERS, device=device())
        for _ in range(3):
            dist.all_reduce(x)
        own.synchronize()
        comm.barrier().wait()
        dist.all_reduce(x)
        with torch.cuda.graph(graph, stream=own, capture_error_mode="thread_local"):
            time.sleep(0.2)
            x += 1
        graph.replay()
    torch.cuda.synchronize()
    comm.barrier().wait()
    return bool((x == x[0]).all())


def test_earlier_calls_are_not_captured() -> None:
    assert values(among_gpus(during_a_capture, 2, setting=DEFAULT)) == [True, True]


def absent_from_the_third(comm: Communicator) -> str:
    """Make five calls in quick succession; rank 1 joins two of them."""
    dist.init_process_group("nccl")
    tensors = [torch.ones(4 * number, device=device()) for number in range(1, 6)]
    for tensor in tensors:
        dist.all_reduce(tensor)
    torch.cuda.synchronize()
    for tensor in tensors[:2] if comm.rank == 1 else tensors:
        dist.all_reduce(tensor)
    return after_the_deadline(comm, tensors[0])


def after_the_deadline(comm: Communicator, x: Tensor) -> str:
    """Return the error of rank 0's next call, once the GPU is free again; rank 1 joins nothing meanwhile."""
    if comm.rank == 1:
        time.sleep(DEADLINE + SLACK)
        return ""
    began = time.monotonic()
    torch.cuda.synchronize()
    assert time.monotonic() - began < DEADLINE + SLACK
    return attempt(lambda: dist.all_reduce(x)).text


def test_first_missed_call_is_named() -> None:
    text = values(among_gpus(absent_from_the_third, 2, setting=BRIEF))[0]
    assert "all_reduce(shape (12,), float32, op sum" in text
    assert "test_in_line.py:" in text
    assert "1 of 2 ranks did not arrive: rank 1 is in no collective" in text


def absent_on_another_stream(comm: Communicator) -> str:
    dist.init_process_group("nccl")
    x = torch.ones(NUMBERS, device=device())
    for _ in range(3):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    if comm.rank == 0:
        with torch.cuda.stream(torch.cuda.Stream()):
            dist.all_reduce(x)
    return after_the_deadline(comm, x)


def test_call_on_another_stream_has_its_own_deadline() -> None:
    text = values(among_gpus(absent_on_another_stream, 2, setting=BRIEF))[0]
    assert "1 of 2 ranks did not arrive: rank 1 is in no collective" in text


class _Failing:
    """A port that cannot reduce."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def allreduce(self, *given: Any) -> Any:
        raise RuntimeError("out of memory, say")


def failing(comm: Communicator) -> str:
    dist.init_process_group("nccl")
    transport: Any = comm._transport
    x = torch.ones(NUMBERS, device=device())
    for _ in range(2):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    if comm.rank == 1:
        transport.gpu_port = _Failing(transport.connected_gpu_port())
    first = attempt(lambda: dist.all_reduce(x))
    torch.cuda.synchronize()
    return first.text or attempt(lambda: dist.all_reduce(x)).text


def test_local_failure_is_reported_on_all_ranks() -> None:
    for text in values(among_gpus(failing, 2, setting=Setting(checks=None, wait=10.0, rests=False))):
        assert "on rank 1: RuntimeError: out of memory, say" in text


def uncounted(comm: Communicator) -> list[int]:
    """Count how often calls in place change the version of a tensor that autograd may have saved."""
    dist.init_process_group("nccl")
    found = []
    for dtype in NUMERIC:
        x = torch.ones(NUMBERS, dtype=dtype, device=device())
        for op in (ReduceOp.SUM, ReduceOp.AVG):
            for _ in range(3):
                dist.all_reduce(x, op)
        dist.broadcast(x, 0)
        found.append(x._version)
    return found


def test_call_in_place_is_not_counted_as_a_change() -> None:
    assert values(among_gpus(uncounted, 2, setting=DEFAULT)) == [[0] * len(NUMERIC)] * 2
