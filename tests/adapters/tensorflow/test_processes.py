"""Replicas that are processes: started by ``collshim.launch``, or by TensorFlow's own ``TF_CONFIG``."""

from __future__ import annotations

import json

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Program
from tests.adapters.tensorflow.test_data import WORKERS
from tests.ports import free_port
from tests.robustness.scripts import Script, await_ends, scripts

pytestmark = pytest.mark.processes

CONFIGURED = """
import torch
import collshim.tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
print(strategy.reduce("SUM", torch.tensor([strategy.extended.worker_devices[0].count("task:1") + 1]), axis=None).item())
"""


def test_processes_find_each_other_by_tf_config() -> None:
    cluster = {"chief": [f"127.0.0.1:{free_port()}"], "worker": ["127.0.0.1:0"]}
    configs = [json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}}) for job in cluster]
    with scripts([Script(CONFIGURED, TF_CONFIG=config) for config in configs]) as workers:
        found = await_ends(workers)
    assert [(seen.code, seen.out) for seen in found] == [(0, "3\n")] * 2, found


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", "TF_CONFIG is '{', should be JSON"),
        ('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 0}}', "task_type is 'ps'"),
        ('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}', "task_id is 2"),
        ('{"cluster": {"worker": ["a", "b:1"]}, "task": {"type": "worker", "index": 0}}', "should be 'host:port'"),
    ],
)
def test_empty_tf_config_is_refused(config: str, said: str) -> None:
    with scripts([Script(CONFIGURED, TF_CONFIG=config)]) as (worker,):
        seen = worker.ended()
    assert seen.code == 1
    assert said in seen.errors


class Resolver:
    """A cluster resolver as users write them."""

    task_type = "worker"
    task_id = 0

    def cluster_spec(self) -> Resolver:
        return self

    def as_dict(self) -> dict[str, list[str]]:
        return {"worker": ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}


def test_resolver_contradicting_the_world_is_refused() -> None:
    with pytest.raises(collshim.RankError, match=r"rank 0 of 3, should be for this world: rank . of 2"):
        collshim.launch(lambda: tf.distribute.MultiWorkerMirroredStrategy(Resolver()), 2, timeout=200)


def test_missing_tpus_are_reported_once(program: Program) -> None:
    done = program("import collshim.tensorflow as tf\ntf.distribute.TPUStrategy()\ntf.distribute.TPUStrategy()")
    assert (done.returncode, done.stderr.count("there are no TPUs here: TPUStrategy is a MirroredStrategy")) == (0, 1)


DATASETS = """
import json, collshim
from tests.adapters.tensorflow.test_data import of_worker

if __name__ == "__main__":
    print(json.dumps(collshim.launch(of_worker, 2, ranks="processes", timeout=80)))
"""


def test_processes_share_the_batches_of_a_dataset(program: Program) -> None:
    done = program(DATASETS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == WORKERS
