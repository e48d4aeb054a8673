"""The order of a group's collectives, and the threads that complete futures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from tests.adapters.conftest import each_of

COUNT = 8
SIZES = (10, 3000, 100_000)
"""Elements that travel with the fingerprints, or apart; large enough for threads to share the sum."""


def _grouped(fn: Callable[..., Any], *args: Any, backend: str = "gloo") -> Any:
    dist.init_process_group(backend)
    try:
        return fn(*args)
    finally:
        dist.destroy_process_group()


def _left_unwaited(complete: str, size: int) -> list[list[float]]:
    """Post all_reduces into tensors with gaps, wait as named, and return what the tensors hold."""
    tensors = [torch.full((size, 2), float(index))[:, 0] for index in range(COUNT)]
    for tensor in tensors:
        work = dist.all_reduce(tensor, dist.ReduceOp.AVG, async_op=True)
        assert work is not None
    last = dist.all_reduce(torch.ones(1), async_op=True)
    assert last is not None
    if complete == "barrier":
        dist.barrier()
    elif complete == "wait":
        last.wait()
    elif complete == "object":
        dist.broadcast_object_list([None])
    else:
        last.get_future().wait()
    return [[tensor.min().item(), tensor.max().item()] for tensor in tensors]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("complete", ["barrier", "wait", "object", "future"])
@pytest.mark.parametrize("size", SIZES)
def test_earlier_calls_between_threads_are_complete(size: int, complete: str, check: bool) -> None:
    with collshim.options(check=check):
        found = collshim.launch(_grouped, 2, args=(_left_unwaited, complete, size), timeout=200)
    assert found == [[[float(index)] * 2 for index in range(COUNT)]] * 2


def _in_every_way() -> list[Any]:
    return [_left_unwaited(complete, size) for complete in ("barrier", "wait", "object", "future") for size in SIZES]


def _of_torch(backend: str) -> list[Any]:
    """Do the same with torch's own functions, over the backend."""
    import torch.distributed as torchs

    torchs.init_process_group(backend)
    found = []
    for size in SIZES:
        tensors = [torch.full((size,), float(index)) for index in range(COUNT)]
        for tensor in tensors:
            torchs.all_reduce(tensor, async_op=True)
        torchs.barrier()
        found.append([[tensor.min().item(), tensor.max().item()] for tensor in tensors])
    torchs.destroy_process_group()
    return found


@pytest.mark.processes
@pytest.mark.parametrize("check", [True, False])
def test_earlier_calls_between_processes_are_complete(check: bool) -> None:
    with collshim.options(check=check):
        found = collshim.launch(_grouped, 2, ranks="processes", args=(_in_every_way,), timeout=200)
        torchs = collshim.launch(_of_torch, 2, ranks="processes", args=("collshim",), timeout=200)
    assert found == [[[[float(index)] * 2 for index in range(COUNT)]] * 12] * 2
    assert torchs == [[[[2.0 * index] * 2 for index in range(COUNT)]] * 3] * 2


@each_of(2, gives=[True, True])
def test_barrier_leaves_messages_under_way() -> bool:
    rank, tensor = dist.get_rank(), torch.zeros(1)
    received = dist.irecv(tensor, 1 - rank)
    dist.barrier()
    dist.send(torch.ones(1), 1 - rank)
    assert received is not None
    return received.wait() and bool(tensor == 1)


@pytest.mark.ranks(2)
def test_works_may_be_waited_for_in_any_order() -> None:
    tensors = [torch.tensor([1.0 + dist.get_rank()]) for _ in range(2)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        assert work is not None
        assert work.wait()
    assert [tensor.item() for tensor in tensors] == [3.0, 3.0]


@pytest.mark.ranks(2)
def test_later_wait_raises_an_earlier_failure() -> None:
    rank, total = dist.get_rank(), torch.ones(1)
    early = dist.all_reduce(torch.ones(2 + rank), async_op=True)
    late = dist.all_reduce(total, async_op=True)
    assert early is not None
    assert late is not None
    with pytest.raises(collshim.MismatchError, match="rank 1 has"):
        late.wait()
    assert total.item() == 2
    assert late.wait()
    with pytest.raises(collshim.MismatchError, match="rank 1 has"):
        early.wait()
    dist.barrier()


@pytest.mark.ranks(2)
def test_forgotten_works_are_dropped_once_complete() -> None:
    rank, most, group = dist.get_rank(), 0, cast("Any", dist.group.WORLD)
    for _ in range(50):
        dist.all_reduce(torch.ones(1), async_op=True)
        received = dist.irecv(torch.zeros(1), 1 - rank)  # sends and receives keep the ranks together
        dist.send(torch.ones(1), 1 - rank)
        assert received is not None
        received.wait()
        most = max(most, len(group.order))
    assert 1 <= most <= 2
    dist.barrier()


def _future_of_a_missing_rank() -> str:
    dist.init_process_group("gloo")
    group, failure = dist.new_group(timeout=timedelta(seconds=1)), ""
    dist.all_reduce(tensor := torch.ones(100_000), group=group)
    if dist.get_rank() == 0:
        work = dist.all_reduce(tensor, group=group, async_op=True)
        assert work is not None
        with pytest.raises(RuntimeError) as caught:
            work.get_future().wait()
        failure = str(caught.value)
    dist.barrier()
    dist.destroy_process_group()
    return failure


@pytest.mark.processes
@pytest.mark.parametrize("check", [True, False])
def test_future_has_the_deadline_of_its_group(check: bool) -> None:
    with collshim.options(check=check):
        one, other = collshim.launch(_future_of_a_missing_rank, 2, ranks="processes", timeout=200)
    assert "DeadlineError" in one
    assert "rank 1" in one
    assert other == ""


@each_of(2, gives=[1000.0, 1000.0])
def test_many_futures_need_few_threads() -> float:
    before = threading.active_count()
    works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(500)]
    futures = [work.get_future() for work in works if work is not None]
    grown = threading.active_count() - before
    results = torch.futures.wait_all(futures)
    assert grown <= 6, grown  # of both ranks
    return float(sum(result[0].item() for result in results))


@pytest.mark.ranks(2)
def test_futures_may_be_made_in_any_order() -> None:
    works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(5)]
    futures = [work.get_future() for work in reversed(works) if work is not None]
    assert [future.wait()[0].item() for future in futures] == [2.0] * 5


@each_of(2, gives=[4.0, 4.0])
def test_callback_may_wait_for_a_later_call() -> float:
    """PowerSGD's hook does so."""

    def again(future: Any) -> Any:
        work = dist.all_reduce(future.value()[0], async_op=True)
        assert work is not None
        return work.get_future().wait()[0]

    work = dist.all_reduce(torch.ones(1), async_op=True)
    other = dist.all_reduce(torch.ones(1), async_op=True)
    assert work is not None
    assert other is not None
    nested, beside = work.get_future().then(again), other.get_future()
    assert beside.wait()[0].item() == 2
    return float(nested.wait().item())


@pytest.mark.ranks(2)
def test_future_of_a_later_call_fails_alone() -> None:
    group = dist.new_group(timeout=timedelta(seconds=20))
    early = dist.all_reduce(torch.ones(1), group=group, async_op=True)
    late = dist.all_reduce(torch.ones(2 + dist.get_rank()), group=group, async_op=True)
    assert early is not None
    assert late is not None
    futures = [early.get_future(), late.get_future()]
    assert futures[0].wait()[0].item() == 2
    with pytest.raises(RuntimeError, match="rank 1 has"):
        futures[1].wait()
