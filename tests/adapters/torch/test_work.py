"""The works of async_op=True: waiting, results, futures."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
import torch

import collshim
import collshim.errors
import collshim.torch.distributed as dist
from tests.adapters.conftest import each_of


@pytest.mark.ranks(2)
def test_work_is_a_torch_work() -> None:
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert isinstance(work, torch.distributed.Work)
    assert isinstance(work, dist.Work)
    assert isinstance(dist.group.WORLD, torch.distributed.ProcessGroup)
    assert (work.wait(), work.synchronize(), work.is_success()) == (True, None, True)  # type: ignore[func-returns-value]


@each_of(2, gives=[True, True])
def test_result_is_the_given_tensors() -> bool:
    parts, tensor = [torch.zeros(1), torch.zeros(1)], torch.ones(1)
    gathered = dist.all_gather(parts, torch.ones(1), async_op=True)
    reduced = dist.all_reduce(tensor, async_op=True)
    assert gathered is not None
    assert reduced is not None
    results = [*gathered.result(), *reduced.result(), *reduced.get_future().wait()]
    gathered.wait()
    reduced.wait()
    return all(one is two for one, two in zip(results, [*parts, tensor, tensor], strict=True))


@each_of(2, gives=[[0, 3.0], [1, 3.0]])
def test_future_callbacks_run_without_a_wait() -> Any:
    over, found = threading.Event(), []

    def note(future: Any) -> None:
        found.extend([dist.get_rank(), future.value()[0].item()])
        over.set()

    work = dist.all_reduce(torch.tensor(1.0 + dist.get_rank()), async_op=True)
    assert work is not None
    assert work.get_future() is work.get_future()
    work.get_future().then(note)
    assert over.wait(20)
    return found


@pytest.mark.ranks(2)
def test_failure_reaches_the_future_and_the_wait() -> Any:
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(1), group=group, async_op=True)
        assert work is not None
        with pytest.raises(RuntimeError, match="rank 1"):
            work.get_future().wait()
        with pytest.raises(RuntimeError, match="rank 1"):  # in C++, as DDP's reducer calls it
            torch.futures.collect_all([work.get_future()]).wait()
        with pytest.raises(collshim.errors.DeadlineError, match=r"rank 1.* Timed out waiting 300ms"):
            work.wait()
        assert isinstance(work.exception(), collshim.CollshimError)
    dist.barrier()


@pytest.mark.ranks(2)
def test_wait_can_be_shorter_than_the_group_timeout() -> Any:
    if dist.get_rank() == 0:
        work = dist.barrier(dist.new_group(), async_op=True)
        assert work is not None
        with pytest.raises(RuntimeError, match=" Timed out waiting 100ms"):
            work.wait(timedelta(seconds=0.1))
    else:
        dist.new_group()
    dist.barrier()


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
@pytest.mark.ranks(2)
def test_all_gather_single_result_is_one_view_per_rank(shape: tuple[int, ...]) -> None:
    work = dist.all_gather_single(whole := torch.zeros(shape), torch.ones(2) * dist.get_rank(), async_op=True)
    assert work is not None
    parts = work.get_future().wait()
    assert parts[0].data_ptr() == whole.data_ptr()
    assert [part.flatten().tolist() for part in work.result()] == [[0.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize("count", [2, 5000])
@pytest.mark.ranks(2)
def test_change_before_the_wait_is_reported(count: int) -> None:
    tensor = torch.ones(count)
    for _ in range(2):
        work = dist.all_reduce(tensor, async_op=True)
        assert work is not None
        tensor += 1
        with pytest.raises(collshim.errors.UsageWarning, match="its input was changed before the wait"):
            work.wait()
    unchanged = dist.all_reduce(tensor, async_op=True)
    assert unchanged is not None
    assert [str(unchanged.wait())] == ["True"]


@pytest.mark.ranks(2)
def test_change_of_an_empty_tensor_is_ignored() -> None:
    """All empty tensors have the same address, the result and the input too."""
    work = dist.all_gather_single(whole := torch.zeros(2, 0), torch.ones(0), async_op=True)
    assert work is not None
    whole += 1
    assert [str(work.wait())] == ["True"]
