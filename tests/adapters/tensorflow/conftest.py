"""Replicas of every strategy that has several, and programs with replicas that are processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from collshim import world
from collshim.tensorflow.config import logical
from collshim.tensorflow.raw_ops import groups

Run = Callable[[Callable[[], Any]], "list[Any]"]
Program = Callable[[str], "subprocess.CompletedProcess[str]"]


def mirrored(size: int) -> tf.distribute.MirroredStrategy:
    return tf.distribute.MirroredStrategy([f"GPU:{index}" for index in range(size)])


def run_mirrored(size: int, fn: Callable[[], Any]) -> list[Any]:
    """Return the result of ``fn`` on each replica of one strategy."""
    strategy = mirrored(size)
    return list(strategy.experimental_local_results(strategy.run(fn)))


def run_workers(size: int, fn: Callable[[], Any]) -> list[Any]:
    """Return the result of ``fn`` on each worker; every rank has its own strategy."""
    try:
        return collshim.launch(lambda: tf.distribute.MultiWorkerMirroredStrategy().run(fn), size, timeout=200)
    except collshim.RankError as error:
        raise error.exception or error from None


@pytest.fixture(params=[run_mirrored, run_workers], ids=["mirrored", "workers"])
def strategy_run(request: pytest.FixtureRequest) -> Callable[[int, Callable[[], Any]], list[Any]]:
    """Return ``run`` of a strategy with a given number of replicas: one result per replica."""
    found: Callable[[int, Callable[[], Any]], list[Any]] = request.param
    return found


@pytest.fixture(params=[1, 2, 4])
def size(request: pytest.FixtureRequest) -> int:
    """The number of replicas."""
    found: int = request.param
    return found


@pytest.fixture
def run(strategy_run: Callable[[int, Callable[[], Any]], list[Any]], size: int) -> Run:
    """Return ``run`` on one, two and four replicas."""
    return lambda fn: strategy_run(size, fn)


@pytest.fixture
def run_two(strategy_run: Callable[[int, Callable[[], Any]], list[Any]]) -> Run:
    """Return ``run`` on two replicas."""
    return lambda fn: strategy_run(2, fn)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run a program's text in another process; it may start ranks."""
    root = Path(__file__).resolve().parents[3]

    def start(text: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(root)}
        return subprocess.run(
            [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=200, check=False
        )

    return start


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Divide the CPU into four logical ones, for one test."""
    monkeypatch.setattr(logical, "_STATE", logical._State())
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
    )
    yield
    if (worlds := world.current().state.pop(groups._DEVICES, None)) is not None:
        worlds.close()


def context() -> tf.distribute.ReplicaContext:
    """Return the caller's replica context."""
    found: tf.distribute.ReplicaContext = tf.distribute.get_replica_context()
    return found


def replica() -> int:
    """Return the number of the caller's replica."""
    return int(context().replica_id_in_sync_group)
