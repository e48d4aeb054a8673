"""``GradManager`` on a single rank: attaching, recording, callbacks and accumulation."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from collshim.megengine.autodiff import GradManager
from collshim.megengine.autodiff.grad_manager import GradManager as SameManager
from collshim.megengine.distributed.helper import TensorFuture

pytestmark = pytest.mark.unranked


def gradient(tensor: Tensor) -> Any:
    return None if tensor.grad is None else tensor.grad.tolist()


def test_grad_manager_class_has_two_paths() -> None:
    assert GradManager is SameManager


def test_attached_tensors_need_gradients_while_recording() -> None:
    weight = torch.ones(2)
    manager = GradManager().attach(weight)
    with manager:
        assert weight.requires_grad
    assert not weight.requires_grad


def test_tensor_keeps_its_own_requires_grad() -> None:
    weight = torch.ones(2, requires_grad=True)
    with GradManager().attach([weight]) as manager:
        manager.backward((weight * 3).sum())
    assert weight.requires_grad
    assert gradient(weight) == [3, 3]


def test_record_and_release_match_the_with_block() -> None:
    weight = torch.ones(2)
    manager = GradManager().attach(weight)
    manager.record()
    loss = (weight * 2).sum()
    manager.backward(loss)
    assert gradient(weight) == [2, 2]
    manager.release()
    assert not weight.requires_grad


def test_output_without_attached_tensors_is_ignored() -> None:
    weight = torch.ones(2)
    with GradManager().attach(weight) as manager:
        manager.backward(torch.ones(3))
    assert weight.grad is None


def test_tensor_attached_while_recording_is_recorded() -> None:
    manager = GradManager()
    with manager:
        x = torch.ones(2)
        manager.attach(x)
        manager.backward((x * 4).sum())
    assert gradient(x) == [4, 4]


def test_computed_tensor_can_be_attached() -> None:
    weight = torch.ones(2)
    with GradManager().attach(weight) as manager:
        middle = weight * 3
        manager.attach(middle)
        manager.backward((middle * 5).sum())
    assert (middle.grad is not None, gradient(weight)) == (True, [15, 15])


def test_callbacks_run_in_order() -> None:
    weight, seen = torch.ones(2), list[Any]()

    def double(tensor: Tensor, grad: Tensor) -> Tensor:
        seen.append(tensor)
        return grad * 2

    manager = GradManager().attach(weight, callbacks=[double, lambda _, grad: grad + 1])
    manager.attach(weight, callbacks=lambda _, grad: grad * 10)
    with manager:
        manager.backward(weight.sum())
    assert gradient(weight) == [30, 30]
    assert seen[0] is weight


def test_callback_may_return_a_future() -> None:
    future, weight = TensorFuture(ack=False), torch.ones(2)
    future.set(torch.tensor([7.0, 8.0]))
    with GradManager().attach(weight, callbacks=lambda _, grad: future) as manager:
        manager.backward(weight.sum())
    assert gradient(weight) == [7, 8]


def test_callback_must_return_a_tensor() -> None:
    weight = torch.ones(2)
    with (
        GradManager().attach(weight, callbacks=lambda _, grad: 3) as manager,
        pytest.raises(TypeError, match="int"),
    ):
        manager.backward(weight.sum())


def test_callback_returning_none_keeps_the_gradient() -> None:
    weight = torch.ones(2)
    with GradManager().attach(weight, callbacks=lambda _, grad: None) as manager:
        manager.backward(weight.sum())
    assert weight.grad is None


def test_two_managers_record_independently() -> None:
    left, right = torch.ones(2), torch.ones(2)
    first, second = GradManager().attach([left]), GradManager().attach([left, right])
    first.record()
    second.record()
    loss = (left * right * 3).sum()
    first.backward(loss)
    assert (gradient(left), gradient(right)) == ([3, 3], None)
    second.backward(loss)
    assert (gradient(left), gradient(right)) == ([6, 6], [3, 3])
    assert not left.requires_grad


def test_manager_does_not_keep_tensors_alive() -> None:
    manager = GradManager().attach(torch.ones(2))
    gc.collect()
    assert manager.attached_tensors() == []


def test_only_torch_tensors_can_be_attached() -> None:
    array: Any = np.ones(2)
    with pytest.raises(AssertionError, match=r"should be Tensor: it is numpy\.ndarray"):
        GradManager().attach([array])


def test_backward_without_a_record_is_refused() -> None:
    manager = GradManager().attach(torch.ones(2))
    with pytest.raises(RuntimeError, match="no computation history"):
        manager.backward(torch.ones(2))
    with manager:
        manager.backward()
        with pytest.raises(RuntimeError, match="no computation history"):
            manager.backward()


def test_recording_twice_is_refused() -> None:
    with GradManager() as manager, pytest.raises(RuntimeError, match="already recording"):
        manager.record()


def test_gradient_count_must_match_outputs() -> None:
    weight = torch.ones(2)
    with GradManager().attach(weight) as manager, pytest.raises(RuntimeError, match="2 dy are passed, should be 1"):
        manager.backward(weight.sum(), [torch.ones(()), torch.ones(())])


def test_gradients_can_be_written_in_place() -> None:
    left, right, dy = torch.ones(2), torch.ones(2), torch.ones(2)
    with GradManager().attach([left, right]) as manager:
        manager.backward([left + right, left.sum()], [dy, torch.tensor(0.0)])
    with GradManager().attach([summed := torch.ones(2)]) as manager:
        manager.backward(summed.sum())
    for tensor in (left, right, summed):
        assert tensor.grad is not None
        tensor.grad.mul_(2)
        assert tensor.grad.tolist() == [2, 2]
    assert dy.tolist() == [1, 1]
