"""Gradients of the operations, computed by ``GradManager`` on every rank."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
import torch

import collshim
import collshim.megengine as mge
from collshim.megengine.autodiff import GradManager
from collshim.megengine.functional import distributed as F
from tests.adapters.conftest import Run, each_of

dist = mge.distributed


def attached_on_the_root_alone(name: str) -> Any:
    rank, size = dist.get_rank(), dist.get_world_size()
    weight, manager = torch.full((size,), 3.0), GradManager()
    if rank == 0:
        manager.attach(weight)
    with manager:
        y = getattr(F, name)(weight * torch.arange(float(size)) if rank == 0 else torch.zeros(size))
        manager.backward(y, torch.full_like(y, 6.0 * (rank + 1)))
    return None if weight.grad is None else weight.grad.tolist()


def test_ranks_without_attached_tensors_join_the_backward(run: Run) -> None:
    assert run(attached_on_the_root_alone, 2, "broadcast") == [[0, 18], None]
    assert run(attached_on_the_root_alone, 2, "scatter") == [[0, 12], None]
    assert run(attached_on_the_root_alone, 2, "all_reduce_sum") == [[0, 18], None]
    assert run(attached_on_the_root_alone, 4, "all_gather") == [[0, 60, 120, 180], None, None, None]


@pytest.mark.parametrize("name", ["reduce_sum", "gather"])
@each_of(2, gives=[(True, None)] * 2)
def test_no_gradient_at_root_means_none_anywhere(name: str) -> Any:
    weight, x = torch.ones(2), torch.ones(2)
    with GradManager().attach([weight, x]) as manager:
        getattr(F, name)(x)
        manager.backward(weight.sum())
    return weight.grad is not None, x.grad


@each_of(2, gives=[[1, 1], [1, 1]])
def test_gradient_of_one_output_of_several() -> Any:
    x = torch.ones(2)
    with GradManager().attach(x) as manager:
        left, right = F.reduce_sum(x), F.gather(2 * x)
        manager.backward(left) if right is not None else manager.backward()
    return None if x.grad is None else x.grad.tolist()


def pipeline(count: int) -> Any:
    """Multiply the received tensor by this rank's weight and pass it on."""
    rank, size = dist.get_rank(), dist.get_world_size()
    weight = torch.full((1,), float(rank + 2))
    with GradManager().attach(weight) as manager:
        x = torch.ones(count) if rank == 0 else F.remote_recv(rank - 1)
        y = x * weight
        if rank < size - 1:
            F.remote_send(y, rank + 1)
            manager.backward()
        else:
            manager.backward(y)
    return None if weight.grad is None else weight.grad.tolist()


@pytest.mark.parametrize("count", [1, 300_000], ids=["small", "large"])
def test_gradients_flow_back_through_a_pipeline(run: Run, count: int) -> None:
    assert run(pipeline, 4, count) == [[60 * count], [40 * count], [30 * count], [24 * count]]


@pytest.mark.parametrize("count", [2, 300_000], ids=["small", "large"])
@each_of(2, gives=[[4.0], [2.0]])
def test_sends_and_collectives_backpropagate_in_order(count: int) -> Any:
    """A large send on every rank, and a collective after it: the backward meets them in the opposite order."""
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((count,), float(rank))
    with GradManager().attach(x) as manager:
        F.remote_send(x, (rank + 1) % size)
        neighbour = F.remote_recv((rank - 1) % size)
        together = F.all_reduce_sum(neighbour * (rank + 1))
        manager.backward(together, torch.ones(count))
    return None if x.grad is None else sorted(set(x.grad.tolist()))


@each_of(2, gives=[None, None])
def test_sender_gets_no_gradient_if_receiver_has_none() -> Any:
    x = torch.ones(2)
    with GradManager().attach(x) as manager:
        if dist.get_rank() == 0:
            F.remote_send(x, 1)
        else:
            F.remote_recv(0)
        manager.backward()
    return x.grad


@each_of(2, gives=[None, False])
def test_unrecorded_send_needs_no_gradient() -> Any:
    x = torch.ones(2, requires_grad=True)
    if dist.get_rank() == 0:
        return F.remote_send(x, 1)
    return F.remote_recv(0, inp=x).requires_grad


@each_of(2, gives=[10, None])
def test_gradient_of_a_scalar_is_a_scalar() -> Any:
    x = torch.tensor(3.0)
    with GradManager().attach(x) as manager:
        if dist.get_rank() == 0:
            F.remote_send(x * 2, 1)
            manager.backward()
        else:
            manager.backward(F.remote_recv(0) * 5)
    return None if x.grad is None else x.grad.item()


@each_of(2, gives=[[3, 3], [3, 3]])
def test_torch_backward_works_too() -> Any:
    x = torch.ones(2, requires_grad=True)
    (F.all_reduce_sum(x) * (dist.get_rank() + 1)).sum().backward()
    return None if x.grad is None else x.grad.tolist()


def not_joined() -> None:
    x = torch.ones(2)
    with GradManager().attach(x) as manager:
        y = F.broadcast(x)
        if dist.get_rank() == 0:
            manager.backward(y)


def test_rank_missing_from_a_backward_is_named(run: Run) -> None:
    with pytest.raises(collshim.RankError, match="rank 1 has returned from its function"):
        run(not_joined, 2)


@each_of(2, gives=[[1, 1], [1, 1]])
def test_calls_without_gradients_are_not_differentiated() -> Any:
    x = torch.ones(2)
    with GradManager().attach(x) as manager:
        with torch.no_grad():
            if dist.get_rank() == 0:
                F.remote_send(x, 1)
            else:
                assert not F.remote_recv(0, inp=x).requires_grad
            assert not F.all_reduce_sum(x).requires_grad
            F.reduce_sum(x)
        manager.backward(x.sum())
    return None if x.grad is None else x.grad.tolist()


def _twice(manages_twice: bool) -> list[Any]:
    """Return dz/dx and d²z/dx² of z = (x³)², whose square the next rank computes; None on that rank."""
    rank = dist.get_rank()
    outer, inner = GradManager(), GradManager()
    x = mge.tensor([2.0])
    outer.attach(x)
    inner.attach(x)
    with ExitStack() as managers:
        if manages_twice or rank == 1:
            managers.enter_context(outer)
        with inner:
            if rank == 0:
                F.remote_send(x**3, 1)
                inner.backward()
            else:
                inner.backward((F.remote_recv(0) ** 2).sum())
        first, x.grad = x.grad, None
        if manages_twice or rank == 1:
            outer.backward([] if first is None else first)
    return [None if grad is None else grad.item() for grad in (first, x.grad)]


@each_of(2, gives=[[192.0, 480.0], [None, None]])
def test_gradient_of_a_gradient_goes_through_messages() -> Any:
    return _twice(manages_twice=True)


@each_of(2, gives=[[192.0, None], [None, None]])
def test_receiver_that_alone_records_gradients_waits_for_none() -> Any:
    return _twice(manages_twice=False)
