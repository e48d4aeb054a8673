"""``Strategy.run``: the replicas' arguments, the results, and what happens if one fails."""

from __future__ import annotations

import _thread
import contextvars
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import context, mirrored, replica


class Pair(NamedTuple):
    a: Any
    b: Any


def per_replica(strategy: tf.distribute.Strategy, make: Callable[[int], Any]) -> Any:
    return strategy.experimental_distribute_values_from_function(lambda ctx: make(ctx.replica_id_in_sync_group))


def test_each_replica_gets_its_component_of_arguments() -> None:
    strategy = mirrored(2)
    value = per_replica(strategy, lambda index: torch.tensor(10 * index))
    a, (b, c), d = strategy.run(
        lambda x, y, k: (x + 5, (y[0], y[1]["s"]), k), args=(value, [value, {"s": "s"}]), kwargs={"k": 7}
    )
    assert [x.item() for x in a.values] == [5, 15]
    assert [x.item() for x in b.values] == [0, 10]
    assert (c, d) == ("s", 7)


def test_structures_differing_between_replicas_fail_an_assertion() -> None:
    with pytest.raises(AssertionError, match=r"^len\(v\) == 2, len\(v0\) == 1, v: \[1, 1\], v0: \[1\]$"):
        mirrored(2).run(lambda: [1] * (replica() + 1))
    with pytest.raises(AssertionError, match=r"^v\[0\].keys: \{'k0'\}  v\[i\].keys: \{'k1'\}$"):
        mirrored(2).run(lambda: {f"k{replica()}": 1})


def test_arguments_must_be_a_list_or_tuple() -> None:
    with pytest.raises(ValueError, match=r"^positional args must be a list or tuple, got <class 'int'>$"):
        mirrored(2).run(lambda x: x, args=3)


def test_value_of_fewer_replicas_is_refused() -> None:
    value = per_replica(mirrored(2), lambda index: index)
    with pytest.raises(collshim.ArgumentIndexError, match="2 components"):
        mirrored(4).run(lambda x: x, args=(value,))


def test_run_raises_a_replica_error_and_wakes_others() -> None:
    seen: list[BaseException] = []
    mine = KeyError("mine")

    def fn() -> Any:
        if replica() == 1:
            raise mine
        try:
            return context().all_reduce("SUM", torch.ones(1))
        except Exception as error:
            seen.append(error)
            raise

    with pytest.raises(KeyError) as caught:
        mirrored(2).run(fn)
    assert caught.value is mine
    assert isinstance(seen[0], tf.errors.UnavailableError)
    assert isinstance(seen[0], collshim.PeerError)
    assert "KeyError" in str(seen[0])


def test_strategy_works_after_a_failure() -> None:
    strategy = mirrored(2)
    with pytest.raises(KeyError):
        strategy.run(lambda: {"no": "number"}[str(replica())])
    result = strategy.run(lambda: context().all_reduce("SUM", torch.ones(1)))
    assert [value.item() for value in result.values] == [2.0, 2.0]


def test_skipped_collective_is_detected_at_once() -> None:
    with pytest.raises(
        RuntimeError, match=r"Some replicas made a different number of .* rank 0 has returned"
    ) as caught:
        mirrored(2).run(lambda: context().all_reduce("SUM", torch.ones(1)) if replica() else None)
    assert isinstance(caught.value, collshim.MismatchError)


def test_interrupt_of_the_caller_ends_waiting_replicas() -> None:
    before = set(threading.enumerate())

    def fn() -> Any:
        if replica() == 0:
            _thread.interrupt_main()
            return context().merge_call(lambda strategy: 1)
        return context().all_reduce("SUM", torch.ones(1))

    with pytest.raises(KeyboardInterrupt):
        mirrored(2).run(fn)
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_rank_can_have_replicas_of_its_own() -> None:
    def rank() -> Any:
        mine = torch.tensor([float(collshim.current().rank)])
        total = mirrored(2).run(lambda: context().all_reduce("SUM", mine)).values[0]
        return collshim.current().communicator.all_reduce(total).wait().item()

    assert collshim.launch(rank, 2, timeout=200) == [2.0, 2.0]


def test_replicas_see_context_variables_of_the_caller() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    assert mirrored(2).run(variable.get) == "set"


def test_no_thread_or_world_is_left_behind() -> None:
    before = threading.active_count()
    for _ in range(3):
        mirrored(4).run(lambda: context().all_gather(torch.ones(1), axis=0))
    assert threading.active_count() == before
    assert collshim.current().size == 1


TWICE = r"^No duplicates allowed in `devices` argument: "
IN_FULL = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("devices", "kind", "said"),
    [
        (["GPU:0", "GPU:0"], AssertionError, TWICE),
        (["GPU:0", "/device:GPU:0"], AssertionError, TWICE),
        ([IN_FULL, "CPU:0"], AssertionError, TWICE),
        (["0"], ValueError, "device is '0'"),
        (5, TypeError, "should be a list of names"),
        ("CPU:0", ValueError, "Unknown attribute 'C' is encountered while parsing the device spec: 'C'"),
    ],
)
def test_missing_or_repeated_devices_are_refused(devices: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        tf.distribute.MirroredStrategy(devices)


@pytest.mark.parametrize("name", ["foo", "XYZ:1", "XLA_GPU:0", "cpu:0:1", " cpu:0"])
def test_unknown_device_kinds_are_refused(name: str) -> None:
    said = f"^device is '{name}', .* Unknown attribute .* is encountered while parsing the device spec: '{name}'"
    with pytest.raises(ValueError, match=said):
        tf.distribute.MirroredStrategy(["CPU:0", name])
    with pytest.raises(ValueError, match=said):
        tf.distribute.OneDeviceStrategy(name)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (None, IN_FULL),
        ("", IN_FULL),
        ("tpu:3", "/job:localhost/replica:0/task:0/device:TPU:3"),
        ("/device:XYZ:1", "/job:localhost/replica:0/task:0/device:XYZ:1"),
        ("/job:worker/task:1/cpu:*", "/job:worker/replica:0/task:1/device:CPU:0"),
    ],
)
def test_device_names_are_completed(name: str | None, wanted: str) -> None:
    assert tf.distribute.OneDeviceStrategy(name).extended.worker_devices == (wanted,)


@pytest.mark.parametrize("devices", [[], ()])
def test_empty_device_list_means_the_default(devices: Any) -> None:
    default = tf.distribute.MirroredStrategy().extended.worker_devices
    assert tf.distribute.MirroredStrategy(devices).extended.worker_devices == default


class Numbers(list[int]):
    """A subclass of list."""


class Places(tuple[int, ...]):
    """A subclass of tuple."""


@pytest.mark.parametrize(("kind", "wanted"), [(Numbers, list), (Places, tuple)])
def test_list_and_tuple_subclasses_come_back_plain(kind: Any, wanted: type) -> None:
    result: Any = mirrored(2).run(lambda: kind([replica()]))
    assert result[0].values == (0, 1)
    assert type(result) is wanted


def test_namedtuple_of_replicas_keeps_its_class() -> None:
    result: Any = mirrored(2).run(lambda: Pair(replica(), b=[1]))
    assert (type(result), result.a.values) == (Pair, (0, 1))


def test_mapping_keys_need_no_order() -> None:
    result: Any = mirrored(2).run(lambda: {"a": replica(), 1: replica()})
    assert [result["a"].values, result[1].values] == [(0, 1), (0, 1)]


def test_default_is_one_replica_per_gpu_or_one() -> None:
    assert tf.distribute.MirroredStrategy().num_replicas_in_sync == max(1, torch.cuda.device_count())


def test_mirrored_strategy_has_one_replica_per_pretended_gpu() -> None:
    with collshim.options(device="cpu", devices=2):
        strategy = tf.distribute.MirroredStrategy()
        assert strategy.num_replicas_in_sync == len(tf.config.list_physical_devices("GPU")) == 2
        assert strategy.reduce("SUM", strategy.run(lambda: torch.ones(2)), axis=None).tolist() == [2, 2]
