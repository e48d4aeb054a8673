from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica


def test_merge_function_arguments_are_per_replica() -> None:
    def merge(strategy: tf.distribute.Strategy, x: Any, same: str, k: Any) -> Any:
        assert [value.item() for value in x.values] == [0, 1]
        assert [value.item() for value in k.values] == [0, 10]
        return x, 7, same, strategy.reduce("SUM", k, axis=None)

    def fn() -> Any:
        mine = torch.tensor(replica())
        return context().merge_call(merge, args=(mine, "x"), kwargs={"k": 10 * mine})

    x, seven, same, total = mirrored(2).run(fn)
    assert [value.item() for value in x.values] == [0, 1]
    assert (seven, same, total.item()) == (7, "x", 10)


def test_merge_functions_run_in_the_thread_of_the_caller() -> None:
    strategy = mirrored(2)

    def merge(given: tf.distribute.Strategy) -> int:
        assert given is strategy is tf.distribute.get_strategy()
        assert tf.distribute.get_replica_context() is None
        return threading.get_ident()

    assert strategy.run(lambda: context().merge_call(merge)) == threading.get_ident()


def test_merge_function_runs_once_after_all_replicas_arrive() -> None:
    order: list[str] = []

    def fn() -> None:
        order.append("before")
        context().merge_call(lambda strategy: order.append("merged"))
        order.append("after")

    mirrored(4).run(fn)
    assert order == ["before"] * 4 + ["merged"] + ["after"] * 4


def test_one_replica_per_thread_passes_plain_arguments(run: Run, size: int) -> None:
    def merge(strategy: tf.distribute.Strategy, x: Any) -> Any:
        return strategy.reduce("SUM", x, axis=None)

    for result in run(lambda: context().merge_call(merge, args=(torch.tensor([replica() + 1.0]),))):
        assert result.tolist() == [size * (size + 1) / 2]


def test_collectives_and_merge_calls_may_alternate() -> None:
    def fn() -> Any:
        x = torch.tensor([replica() + 1.0])
        for _ in range(3):
            x = context().all_reduce("MEAN", x)
            x = context().merge_call(lambda strategy, given: strategy.gather(given, axis=0).sum(), args=(x,)).reshape(1)
        return x

    assert [value.tolist() for value in mirrored(2).run(fn).values] == [[12.0]] * 2


def test_unequal_merge_call_counts_are_detected() -> None:
    message = r"^Some replicas made a different number of replica_context\(\)\.merge_call\(\) calls\.$"
    for kind in (RuntimeError, collshim.MismatchError):
        with pytest.raises(kind, match=message):
            mirrored(2).run(lambda: context().merge_call(lambda strategy: 1) if replica() else None)


def test_run_raises_errors_of_merge_functions() -> None:
    mine = KeyError("mine")

    def merge(strategy: tf.distribute.Strategy) -> None:
        raise mine

    with pytest.raises(KeyError) as caught:
        mirrored(2).run(lambda: context().merge_call(merge))
    assert caught.value is mine


def test_failing_replica_wakes_others_in_a_merge_call() -> None:
    def fn() -> Any:
        if replica():
            raise KeyError("mine")
        return context().merge_call(lambda strategy: 1)

    with pytest.raises(KeyError):
        mirrored(2).run(fn)


def test_missing_replica_in_merge_call_exceeds_the_deadline() -> None:
    gate = threading.Event()

    def fn() -> Any:
        if replica() == 1:
            gate.wait(30)
            return None
        try:
            return context().merge_call(lambda strategy: 1)
        finally:
            gate.set()

    with (
        collshim.options(timeout=0.2),
        pytest.raises(tf.errors.DeadlineExceededError, match=r"replicas \[1\] did not arrive within 0.2 s"),
    ):
        mirrored(2).run(fn)
