"""A call posted on one stream and waited for on another: its result, and all memory that it used."""

from __future__ import annotations

import pytest
import torch

from collshim import Communicator
from collshim.torch.distributed.work import Work
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import among_gpus, device, values
from tests.cuda_model.scenarios import ROWS, crossing
from tests.gpu.scenarios import ALL, Post, given, results

require_model()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [1, 3])
def test_another_stream_can_wait_and_use_the_result(size: int, name: str) -> None:
    values(among_gpus(crossing, size, ALL[name]))


def dropped(comm: Communicator, post: Post) -> None:
    """Drop the input after the post, and reuse its memory on the same stream."""
    x, parts = given(torch.float32, comm, device(), ROWS)
    for _ in range(2):
        works = post(comm, x.clone(), parts.clone())
        junk = [torch.full_like(tensor, -1.0) for tensor in (x, parts) for _ in range(2)]
        results(works)
        del junk


@pytest.mark.parametrize("name", ALL)
def test_input_can_be_dropped_before_the_wait(name: str) -> None:
    values(among_gpus(dropped, 2, ALL[name]))


def through_a_future(comm: Communicator) -> list[float]:
    """Wait for a future on a stream that nothing else orders after NCCL, or after the stream of the post."""
    own, parts = torch.full((8,), comm.rank + 1.0, device=device()), torch.zeros(comm.size, 8, device=device())
    places = list(parts.unbind(0))
    summed = Work(comm.all_reduce(own, out=own), 20.0, [own]).get_future()
    gathered = Work(comm.all_gather(own, out=places), 20.0, [places]).get_future()
    with torch.cuda.stream(torch.cuda.Stream()):
        summed.wait()
        first = (own * 1)[0].item()
        gathered.wait()
        return [first, (parts * 1)[0, 0].item()]


def test_future_orders_the_waiting_stream() -> None:
    assert values(among_gpus(through_a_future, 2)) == [[3.0, 3.0]] * 2


def with_a_callback(comm: Communicator) -> float:
    own = torch.full((8,), comm.rank + 1.0, device=device())
    future = Work(comm.all_reduce(own, out=own), 20.0, [own]).get_future().then(lambda done: done.value()[0] * 2)
    with torch.cuda.stream(torch.cuda.Stream()):
        return float((future.wait() * 1)[0].item())


def test_future_callback_follows_the_data() -> None:
    assert values(among_gpus(with_a_callback, 2)) == [6.0] * 2
