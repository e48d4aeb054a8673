"""Each rank makes its groups in its own order and number; the world's ranks make the world's group."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.megengine as mge
from collshim.megengine.autodiff import GradManager
from collshim.megengine.distributed import helper
from tests.adapters.conftest import Run, each_of

dist = mge.distributed


def broadcast_list() -> list[Any]:
    rank = dist.get_rank()
    arrays: list[Any] = [
        torch.tensor([1.0, 2.0]) + rank,
        torch.nn.Parameter(torch.tensor([[3.0]]) * (rank + 1)),
        np.array([rank], dtype=np.int32),
    ]
    before = list(map(id, arrays))
    dist.bcast_list_(arrays)
    assert list(map(id, arrays)) == before
    return [array.tolist() for array in arrays]


@pytest.mark.parametrize("size", [2, 4])
def test_bcast_list_overwrites_arrays_with_the_roots(run: Run, size: int) -> None:
    assert run(broadcast_list, size) == [[[1, 2], [[3]], [0]]] * size


def reduced_gradients(method: str) -> list[Any]:
    """Two parameters of one dtype, one of another, and one that no loss uses."""
    rank = dist.get_rank()
    inp = torch.arange(3.0) + 100 * rank
    weight, bias, wide = torch.ones(3), torch.ones(1, 2), torch.tensor(1.0, dtype=torch.float64)
    unused = torch.ones(2)
    manager = GradManager()
    manager.attach([weight, bias, wide, unused], callbacks=dist.make_allreduce_cb(method))
    with manager:
        manager.backward((weight * inp).sum() + (bias * (rank + 1)).sum() + (wide * 2).float())
    found = [weight.grad, bias.grad, wide.grad, unused.grad]
    return [None if grad is None else grad.tolist() for grad in found]


@pytest.mark.parametrize("method", ["sum", "SUM"])
def test_callback_sums_gradients_of_all_ranks(run: Run, method: str) -> None:
    assert run(reduced_gradients, 2, method) == [[[100, 102, 104], [[3, 3]], 4, None]] * 2
    assert run(reduced_gradients, 4, method) == [[[600, 604, 608], [[10, 10]], 8, None]] * 4


@each_of(2, gives=[[[2], [4], [6], [8]]] * 2)
def test_gradients_larger_than_a_pack_are_reduced() -> list[Any]:
    weights = [torch.ones(1 << 20) for _ in range(4)]
    with GradManager().attach(weights, callbacks=dist.make_allreduce_cb("sum")) as manager:
        loss = torch.stack([weight.sum() * (index + 1) for index, weight in enumerate(weights)]).sum()
        manager.backward(loss)
    return [None if weight.grad is None else weight.grad.unique().tolist() for weight in weights]


@each_of(2, gives=[[2, 2], [2, 2]])
def test_failed_backward_leaves_nothing_to_reduce() -> Any:
    """The gradient of a failed backward is not reduced with the next one."""

    def fail(tensor: Any, grad: Any) -> Any:
        raise LookupError

    weight, callback = torch.ones(2), dist.make_allreduce_cb("sum")
    with GradManager().attach(torch.ones(2)).attach(weight, callbacks=callback) as broken:
        broken.attach(other := torch.ones(2), callbacks=fail)
        if dist.get_rank() == 0:
            with pytest.raises(LookupError):
                broken.backward((weight * other).sum())
    with GradManager().attach(weight, callbacks=callback) as manager:
        manager.backward(weight.sum())
    return None if weight.grad is None else weight.grad.tolist()


def by_the_product() -> None:
    dist.make_allreduce_cb("prod")


def test_reduce_method_must_be_sum_or_mean(refused: Callable[..., list[BaseException]]) -> None:
    assert all(isinstance(error, AssertionError) for error in refused(by_the_product, 2))


@each_of(2, gives=["AllreduceCallback"] * 2)
def test_make_allreduce_cb_returns_an_allreduce_callback() -> str:
    return type(dist.make_allreduce_cb("sum")).__name__


def test_pack_offsets_follow_the_shapes() -> None:
    shapes = [(1,), (3, 3), ()]
    offsets = helper.get_offsets(shapes)
    assert offsets == [0, 1, 1, 10, 10, 11]
    packed = helper.param_pack_concat(
        [torch.ones(1), np.full((3, 3), 2.0, np.float32), torch.tensor(3.0)], offsets, offsets
    )
    assert packed.tolist() == [1, *[2] * 9, 3]
    parts = helper.param_pack_split(packed, offsets, shapes)
    assert (type(parts), [tuple(part.shape) for part in parts]) == (tuple, [(1,), (3, 3), (1,)])


def test_callback_with_a_backend_can_be_made_before_the_world() -> None:
    assert isinstance(dist.make_allreduce_cb("mean", backend="auto"), helper.AllreduceCallback)
    with pytest.raises(AssertionError, match="reduce_method is 'prod', should be 'sum' or 'mean'"):
        dist.make_allreduce_cb("prod", backend="auto")


def packed_and_reduced(method: str) -> Any:
    arrays = [torch.ones(2) + dist.get_rank(), torch.zeros(1, 1)]
    parts = helper.pack_allreduce_split(arrays, [(2,), (1, 1)], dist.WORLD, method)
    return [part.tolist() for part in parts]


def test_pack_is_reduced_in_one_call(run: Run) -> None:
    assert run(packed_and_reduced, 2, "sum") == [[[3, 3], [[0]]]] * 2
    assert run(packed_and_reduced, 2, "mean") == [[[1.5, 1.5], [[0]]]] * 2


def test_future_returns_the_value_that_was_set() -> None:
    future = helper.TensorFuture()
    setter = threading.Thread(target=future.set, args=(5,))
    setter.start()
    assert future.get() == 5
    setter.join()


def test_unset_future_times_out() -> None:
    with collshim.options(timeout=0.05), pytest.raises(collshim.DeadlineError):
        helper.TensorFuture().get()


@pytest.mark.parametrize("name", ["device", "numpy", "shape", "dtype"])
def test_future_tensor_is_unavailable_before_it_is_set(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} is unknown"):
        getattr(helper.TensorFuture(), name)()


def ordered(came: list[str]) -> None:
    if dist.get_rank() == 0:
        came.append("first")
    dist.synchronized(lambda: None)()
    if dist.get_rank() == 1:
        came.append("second")


def test_synchronized_function_returns_after_all_ranks_called(run: Run) -> None:
    came: list[str] = []
    run(ordered, 2, came)
    assert came == ["first", "second"]
