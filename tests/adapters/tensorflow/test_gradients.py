"""Gradients that TensorFlow 2.21 computed on two replicas, and the rules behind them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica


def leaf(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


@pytest.mark.parametrize(("used", "wanted"), [("ab", [[1.0], [2.0]]), ("aa", [[3.0], [0.0]])])
def test_unused_outputs_send_zero_gradients(run_two: Run, used: str, wanted: list[list[float]]) -> None:
    """Each replica uses one output; both leaves of both replicas get the sum, and zeros if nobody uses theirs."""

    def differentiate() -> Any:
        a, b = leaf(1.0), leaf(2.0)
        result = context().all_gather({"a": a, "b": b}, axis=0)
        ((replica() + 1) * result[used[replica()]].sum()).backward()
        return [None if x.grad is None else x.grad.tolist() for x in (a, b)]

    assert run_two(differentiate) == [wanted] * 2
    assert differentiate() == [[1.0], [0.0]]


def test_all_gather_can_be_differentiated_twice(run_two: Run) -> None:
    def differentiate() -> Any:
        z = leaf(replica() + 1)
        loss = (context().all_gather(z, axis=0) ** 3).sum()
        first = torch.autograd.grad(loss, z, create_graph=True)[0]
        return first.item(), torch.autograd.grad(first.sum(), z)[0].item()

    assert run_two(differentiate) == [(6.0, 12.0), (24.0, 24.0)]


def test_nests_with_integers_can_be_differentiated(run_two: Run) -> None:
    def differentiate() -> Any:
        x = leaf(replica() + 1)
        result = context().all_reduce("SUM", [torch.tensor([1]), x, 2 * x])
        assert not result[0].requires_grad
        return torch.autograd.grad((result[1] + result[2]).sum(), x)[0].tolist()

    assert run_two(differentiate) == [[6.0], [6.0]]


def test_replica_without_gradient_joins_the_backward(run_two: Run) -> None:
    def differentiate() -> Any:
        x = leaf(1.0) if replica() else torch.tensor([1.0])
        context().all_reduce("SUM", x).sum().backward()
        return None if x.grad is None else x.grad.tolist()

    assert run_two(differentiate) == [None, [2.0]]


def test_slices_have_no_gradient(run_two: Run) -> None:
    def differentiate() -> Any:
        x = leaf(1.0)
        result = context().all_reduce("SUM", [x, tf.IndexedSlices(2 * x, torch.tensor([0]))])
        return [part.requires_grad for part in (result[0], result[1].values)]

    assert run_two(differentiate) == [[False, False]] * 2


def test_replica_learns_that_no_gradient_is_needed() -> None:
    with torch.no_grad():
        result = mirrored(2).run(lambda: context().all_reduce("SUM", leaf(1.0)).requires_grad)
    assert result is False


def test_gradients_flow_through_reducing_all_components() -> None:
    strategy = mirrored(2)
    x = [leaf(1.0, 2.0), leaf(3.0, 4.0)]
    value = strategy.experimental_distribute_values_from_function(lambda ctx: x[ctx.replica_id_in_sync_group])
    loss = strategy.reduce("MEAN", value, axis=None).sum() + strategy.gather(value, axis=0)[3]
    loss.backward()
    assert [given.grad.tolist() for given in x if given.grad is not None] == [[0.5, 0.5], [0.5, 1.5]]
