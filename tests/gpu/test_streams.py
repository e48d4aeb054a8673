"""A call over NCCL follows the stream of its post; a wait orders the waiting stream; the host continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim import Communicator, Work
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE, busy, require_gpu
from tests.gpu.scenarios import ALL, HOST_WAITS, Post, results

require_gpu()

FREE = sorted(set(ALL) - HOST_WAITS)
ROWS = 1 << 14


@pytest.fixture(scope="module")
def comm() -> Iterator[Communicator]:
    with world_of_one() as world:
        yield world.communicator


@pytest.fixture
def _no_synchronisation() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


def filled(value: float) -> tuple[Tensor, Tensor]:
    return torch.full((ROWS, 3), value, device=DEVICE), torch.full((1, ROWS, 3), value, device=DEVICE)


def tensors(found: Any) -> list[Tensor]:
    """Return all tensors of a result, however nested."""
    if isinstance(found, Tensor):
        return [found]
    return [tensor for item in found for tensor in tensors(item)] if isinstance(found, list | tuple) else []


def only(found: Sequence[Tensor]) -> set[float]:
    """Return the distinct numbers."""
    return {value for tensor in found for value in tensor.unique().tolist()}


@pytest.mark.usefixtures("_no_synchronisation")
@pytest.mark.parametrize("name", FREE)
def test_torch_sees_no_synchronization(comm: Communicator, name: str) -> None:
    results(ALL[name](comm, *filled(1.0)))


def far_ahead(post: Post, comm: Communicator) -> bool:
    """Return whether the call was posted and waited for while the stream before it is still busy."""
    with torch.cuda.stream(torch.cuda.Stream()):
        x, parts = filled(1.0)
        for _ in range(3):
            results(post(comm, x, parts))
        torch.cuda.synchronize()
        before = busy()
        results(post(comm, x, parts))
        ahead = not before.query()
    torch.cuda.synchronize()
    return ahead


@pytest.mark.parametrize("name", FREE)
def test_host_does_not_wait(comm: Communicator, name: str) -> None:
    assert far_ahead(ALL[name], comm)


def late(name: str, comm: Communicator, wait: Callable[[Sequence[Work[Any]]], list[Tensor]]) -> set[float]:
    """Return the values that a call reads from an input that its stream writes late."""
    x, parts = filled(0.0)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        busy()
        x.fill_(7.0)
        parts.fill_(7.0)
        works = ALL[name](comm, x, parts)
        seen = wait(works)
    torch.cuda.synchronize()
    return only(seen)


WITH_RESULT = sorted(set(ALL) - {"barrier"})


@pytest.mark.parametrize("name", WITH_RESULT)
def test_call_follows_its_stream(comm: Communicator, name: str) -> None:
    found = late(name, comm, lambda works: [tensor.clone() for tensor in tensors(results(works))])
    assert found == {7.0}


@pytest.mark.parametrize("name", WITH_RESULT)
def test_another_stream_can_wait(comm: Communicator, name: str) -> None:
    def elsewhere(works: Sequence[Work[Any]]) -> list[Tensor]:
        with torch.cuda.stream(torch.cuda.Stream()):
            return [tensor.clone() for tensor in tensors(results(works))]

    assert late(name, comm, elsewhere) == {7.0}


@pytest.mark.parametrize("name", FREE)
def test_input_can_be_dropped_before_the_wait(comm: Communicator, name: str) -> None:
    """Its memory is not reused while NCCL reads it."""
    with torch.cuda.stream(torch.cuda.Stream()):
        busy(100_000_000)
        works = ALL[name](comm, *filled(7.0))
        junk = [filled(9.0) for _ in range(4)]
        seen = [tensor.clone() for tensor in tensors(results(works))]
    torch.cuda.synchronize()
    assert only(seen) <= {7.0}
    assert len(junk) == 4


def test_busy_work_is_not_done(comm: Communicator) -> None:
    x, _ = filled(1.0)
    comm.all_reduce(x).wait()
    torch.cuda.synchronize()
    busy()
    work = comm.all_reduce(x)
    assert not work.done()
    torch.cuda.synchronize()
    assert work.done()


def test_slow_call_does_not_end_a_checked_group() -> None:
    """NCCL takes a wait with its own deadline for a command to end the group."""
    with world_of_one(checks=True) as world:
        x, _ = filled(2.0)
        world.communicator.all_reduce(x).wait()
        for _ in range(3):
            busy()
            found = world.communicator.all_reduce(x).wait()
            torch.cuda.synchronize()
            assert only([found]) == {2.0}
