"""All ranks save and exit if one is about to be stopped: steps, files and codes are those of TensorFlow 2.21."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from collshim import world
from tests.ports import free_port
from tests.robustness.scripts import Script, await_ends, scripts

experimental = tf.distribute.experimental


class Training:
    """Steps that add one to a weight; rank 1 is told of its stop before the step ``told``."""

    handler: Any

    def __init__(self, folder: Path, told: int | None, **config: Any) -> None:
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.step, self.losses = tf.Variable(0, dtype=tf.int64), list[float]()
        with self.strategy.scope():
            self.weight = tf.Variable(1.0)
            self.checkpoint: Any = tf.train.Checkpoint(weight=self.weight, step=self.step)
            ranks = world.current().size
            mine = world.current().rank == ranks - 1
            notice = experimental.TerminationConfig(
                lambda: mine and self.handler.total_run_calls == told, **{"exit_fn": self.leave, **config}
            )
            resolver = self.strategy.cluster_resolver
            self.handler = experimental.PreemptionCheckpointHandler(resolver, self.checkpoint, folder, notice)

    def leave(self) -> None:
        raise SystemExit(7)

    def train_step(self, factor: float) -> Any:
        losses = self.strategy.run(lambda: self.weight * factor)
        self.weight.assign_add(1.0)
        return self.strategy.reduce("SUM", losses, axis=None)

    def train(self, steps: int) -> None:
        while int(self.step) < steps:
            self.losses.append(float(self.handler.run(self.train_step, factor=2.0)))
            self.step.assign_add(1)


@pytest.mark.ranks(2)
def test_ranks_save_after_one_more_step_and_go_on_later(tmp_path: Path) -> None:
    first = Training(tmp_path / "saved", told=3)
    with pytest.raises(SystemExit) as caught:
        first.train(6)
    assert (caught.value.code, first.losses, first.handler.total_run_calls) == (7, [4, 8, 12, 16], 4)
    assert sorted(os.listdir(tmp_path)) == ["saved"]  # the folders of the other ranks are gone
    files = ["checkpoint", "ckpt-1.data-00000-of-00001", "ckpt-1.index"]
    assert sorted(os.listdir(tmp_path / "saved")) == files
    second = Training(tmp_path / "saved", told=None)
    assert (float(second.weight), int(second.step), second.handler.total_run_calls) == (5, 4, 4)
    second.train(6)
    assert (second.losses, second.handler.total_run_calls) == ([20, 24], 6)


@pytest.mark.ranks(2)
def test_grace_period_is_used_for_training(tmp_path: Path) -> None:
    training = Training(tmp_path / "saved", told=1, grace_period=0.05)
    with pytest.raises(SystemExit):
        training.train(100_000)
    assert training.handler.total_run_calls > 3
    assert "ckpt-2.index" in os.listdir(tmp_path / "saved")


@pytest.mark.ranks(1)
def test_program_may_stay_and_save_by_itself(tmp_path: Path) -> None:
    calls = list[Any]()
    training = Training(tmp_path / "saved", told=0, exit_fn=lambda: calls.append("left"), save_fn=calls.append)
    for step in range(4):
        training.handler.save_checkpoint_if_preempted(step)
    assert (calls, training.handler.total_run_calls) == ([1, "left"], 4)
    assert int(training.checkpoint.checkpointed_runs) == 1
    with training.handler.watch_preemption_scope():
        assert training.handler.run(lambda: None) is None


@pytest.mark.ranks(2)
def test_manager_is_the_ranks_own(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(value=tf.Variable(1.0))
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / str(world.current().rank), max_to_keep=3)
    notice = experimental.TerminationConfig(lambda: True)
    handler = experimental.PreemptionCheckpointHandler(None, manager, termination_config=notice)
    handler.run(lambda: None)
    with pytest.raises(SystemExit) as caught:
        handler.run(lambda: None)
    assert (caught.value.code, Path(str(manager.latest_checkpoint)).name) == (42, "ckpt-1")


class WithServers:
    """The resolver of a cluster with parameter servers."""

    task_type, task_id = "worker", 0

    def cluster_spec(self) -> tf.train.ClusterSpec:
        return tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["a:2"]})


@pytest.mark.ranks(2)
def test_wrong_handlers_are_refused(tmp_path: Path) -> None:
    checkpoint, notice = tf.train.Checkpoint(), experimental.TerminationConfig(lambda: False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="a checkpoint_dir must be passed as well"):
        experimental.PreemptionCheckpointHandler(None, checkpoint)
    with pytest.raises(NotImplementedError, match="parameter servers are not supported") as caught:
        experimental.PreemptionCheckpointHandler(WithServers(), checkpoint, tmp_path, notice)
    assert isinstance(caught.value, collshim.ArgumentError)
    with pytest.raises(RuntimeError, match=r"rank \d of 2 is a thread, which no signal reaches"):
        experimental.PreemptionCheckpointHandler(None, checkpoint, tmp_path)


SIGNALLED = """
import os, signal, sys
import collshim.tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver
with strategy.scope():
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step)
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(resolver, checkpoint, os.environ["FOLDER"])
print("from", int(step))
while int(step) < 5:
    if resolver.task_id == 1 and int(step) == 2 and handler.total_run_calls == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    handler.run(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None))
    step.assign_add(1)
print("to", int(step))
"""


@pytest.mark.processes
def test_signal_to_one_worker_stops_both(tmp_path: Path) -> None:
    def run() -> list[tuple[int | None, str]]:
        cluster = {"worker": [f"127.0.0.1:{free_port()}", "127.0.0.1:0"]}
        configs = [json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}}) for index in (0, 1)]
        made = [Script(SIGNALLED, TF_CONFIG=config, FOLDER=str(tmp_path / "saved")) for config in configs]
        with scripts(made) as workers:
            return [(seen.code, seen.out) for seen in await_ends(workers)]

    assert run() == [(42, "from 0\n")] * 2
    assert run() == [(0, "from 3\nto 5\n")] * 2
