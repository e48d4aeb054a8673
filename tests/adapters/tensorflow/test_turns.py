"""Replicas of a ``MirroredStrategy`` run one at a time, in the order of TensorFlow 2.21 on three CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import context, mirrored, replica

Function = Callable[[list[Any]], Any]


def collectives(order: list[Any]) -> None:
    mine = replica()
    order.append(("a", mine))
    context().all_reduce("SUM", [tf.constant(float(mine)), tf.constant(2.0)])
    order.append(("b", mine))
    context().all_gather(tf.constant([float(mine)]), 0)
    order.append(("c", mine))


def merge_calls(order: list[Any]) -> None:
    mine = replica()
    order.append(("a", mine))
    context().merge_call(lambda strategy: order.append("merged"))
    order.append(("b", mine))


def gradients(order: list[Any]) -> None:
    mine = replica()
    x = tf.constant(float(mine))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = context().all_reduce("SUM", x * x)
        order.append(("a", mine))
        loss = context().all_reduce("MEAN", total * total)
    order.append(("b", mine))
    tape.gradient(loss, x)
    order.append(("c", mine))


def of_the_engine(order: list[Any]) -> None:
    communicator = collshim.current().communicator
    order.append(("a", communicator.rank))
    communicator.all_reduce(torch.ones(1)).wait()
    order.append(("b", communicator.rank))


def large(order: list[Any]) -> None:
    mine = replica()
    order.append(("a", mine))
    context().all_reduce("SUM", torch.ones(1 << 20))
    order.append(("b", mine))


def rounds(letters: str) -> list[Any]:
    return [(letter, mine) for letter in letters for mine in range(3)]


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (collectives, rounds("abc")),
        (merge_calls, [*rounds("a"), "merged", *rounds("b")]),
        (gradients, rounds("abc")),
        (of_the_engine, rounds("ab")),
        (large, rounds("ab")),
    ],
)
def test_replicas_run_in_order_up_to_each_wait(fn: Function, wanted: list[Any]) -> None:
    order: list[Any] = []
    mirrored(3).run(lambda: fn(order))
    assert order == wanted


def failing_first(order: list[Any]) -> None:
    order.append(("a", replica()))
    raise KeyError("mine")


def failing_after_a_merge(order: list[Any]) -> None:
    mine = replica()
    context().merge_call(lambda strategy: None)
    order.append(("a", mine))
    if mine == 1:
        raise KeyError("mine")


@pytest.mark.parametrize(("fn", "wanted"), [(failing_first, [("a", 0)]), (failing_after_a_merge, [("a", 0), ("a", 1)])])
def test_failure_leaves_waiting_replicas_unchanged(fn: Function, wanted: list[Any]) -> None:
    order: list[Any] = []
    with pytest.raises(KeyError):
        mirrored(3).run(lambda: fn(order))
    assert order == wanted


def test_caught_mismatch_keeps_the_turns() -> None:
    order: list[Any] = []

    def fn() -> None:
        mine = replica()
        with pytest.raises(tf.errors.InvalidArgumentError):
            context().all_reduce("SUM", tf.ones([mine + 1]))
        order.append(("a", mine))
        context().all_reduce("SUM", tf.ones([1]))
        order.append(("b", mine))

    mirrored(3).run(fn)
    assert order == rounds("ab")
