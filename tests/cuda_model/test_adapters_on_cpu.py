"""Adapters that keep tensors on the CPU: if GPUs exist the log says so once, at whichever entry is first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.mindspore as ms
import collshim.tensorflow as tf
from collshim import log
from collshim.adapting import devices
from collshim.mindspore.communication import init, release
from tests.cuda_model.hardware import require_model

require_model()


@pytest.fixture(autouse=True)
def _untold(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(log, "_warned", {})
    devices.tell_of_cpu.cache_clear()
    yield
    devices.tell_of_cpu.cache_clear()
    ms.set_context(device_target="CPU")


def in_a_block() -> Any:
    with tf.device("GPU:1"):
        return tf.constant([1.0])


def in_replicas() -> Any:
    def step() -> Any:
        own = tf.constant([1.0])
        return tf.distribute.get_replica_context().all_reduce("sum", own)

    strategy = tf.distribute.MirroredStrategy()
    return strategy.experimental_local_results(strategy.run(step))[0]


def with_a_target() -> Any:
    ms.set_context(device_target="GPU")
    return ms.Tensor(np.ones(1, np.float32))


def with_a_backend() -> Any:
    def rank() -> Any:
        init("nccl")
        found = ms.ops.AllReduce()(ms.Tensor(np.ones(1, np.float32)))
        release()
        return found

    return collshim.launch(rank, 2, timeout=200)[0]


DOORS: dict[str, tuple[str, Callable[[], Any]]] = {
    "tf.constant": ("tensorflow", lambda: tf.constant([1.0])),
    "tf.Variable": ("tensorflow", lambda: tf.Variable([1.0]).read_value()),
    "tf.device": ("tensorflow", in_a_block),
    "MirroredStrategy": ("tensorflow", in_replicas),
    "set_context": ("mindspore", with_a_target),
    "init": ("mindspore", with_a_backend),
}


@pytest.mark.parametrize("door", DOORS)
def test_cpu_fallback_is_reported_once(door: str, caplog: pytest.LogCaptureFixture) -> None:
    framework, enter = DOORS[door]
    found = [enter() for _ in range(2)]
    assert {torch.as_tensor(value).device.type for value in found} == {"cpu"}
    told = [record for record in caplog.records if record.name == "collshim"]
    assert [(record.levelno, record.getMessage().partition(":")[0]) for record in told] == [
        (logging.WARNING, f"collshim.{framework} keeps tensors on the CPU")
    ]


def test_gpu_data_of_a_program_stays_on_the_gpu() -> None:
    own = torch.ones(2, device="cuda:1")
    assert tf.constant(own).device.index == ms.Tensor(own).device.index == 1
