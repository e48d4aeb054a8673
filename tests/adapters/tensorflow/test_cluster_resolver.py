"""``TFConfigClusterResolver`` describes a cluster as in TensorFlow 2.21."""

from __future__ import annotations

import json
from typing import Any

import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

Resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver

CONFIG = {
    "cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"]},
    "task": {"type": "worker", "index": 1},
    "rpc_layer": "grpc",
}


@pytest.fixture
def tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps(CONFIG))


@pytest.mark.usefixtures("tf_config")
def test_resolver_reads_tf_config() -> None:
    resolver = Resolver()
    assert resolver.cluster_spec().as_dict() == CONFIG["cluster"]
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("worker", 1, "grpc")
    assert [resolver.master(), resolver.master("chief", 0, "http")] == ["grpc://c:3", "http://a:1"]


@pytest.mark.usefixtures("tf_config")
def test_resolver_arguments_override_tf_config() -> None:
    resolver = Resolver("chief", 0, "http")
    assert (resolver.task_type, resolver.task_id, resolver.master()) == ("chief", 0, "http://a:1")
    resolver.task_type, resolver.task_id, resolver.rpc_layer = "worker", 0, "grpc"
    assert resolver.master() == "grpc://b:2"


def test_no_tf_config_means_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    resolver = Resolver()
    assert not resolver.cluster_spec()
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer, resolver.master()) == (None, None, None, "")


def test_cluster_of_one_task_has_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"worker": ["b:2"]}, "task": {"type": "worker", "index": "0"}})
    )
    assert (Resolver().master(), Resolver().task_id) == ("", 0)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_unreadable_tf_config_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="should be"):
        Resolver().cluster_spec()


def spec(cluster: Any) -> Any:
    return tf.distribute.cluster_resolver.ClusterSpec(cluster)


def test_cluster_spec_knows_its_tasks() -> None:
    cluster = spec({"worker": {"0": "b:2", "3": "c:4"}, "chief": ["a:1"]})
    assert cluster.as_dict() == {"worker": {0: "b:2", 3: "c:4"}, "chief": ["a:1"]}
    assert (cluster.jobs, cluster.num_tasks("worker"), cluster.task_indices("worker")) == (
        ["worker", "chief"],
        2,
        [0, 3],
    )
    assert cluster.job_tasks("worker") == ["b:2", None, None, "c:4"]
    assert cluster.task_address("worker", 3) == "c:4"
    assert repr(cluster) == "ClusterSpec({'chief': ['a:1'], 'worker': {0: 'b:2', 3: 'c:4'}})"
    assert cluster == spec(cluster.as_dict())


def test_cluster_spec_refuses_unknown_jobs_and_tasks() -> None:
    with pytest.raises(ValueError, match=r"^No such job in cluster: 'foo'$"):
        spec({}).job_tasks("foo")
    with pytest.raises(ValueError, match=r"^No task with index 9 in job 'worker'$"):
        spec({"worker": ["b:2"]}).task_address("worker", 9)


def test_strategy_knows_the_resolver_of_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"worker": ["b:2"]}, "task": {"type": "worker", "index": 0}})
    )
    assert tf.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_type == "worker"
    monkeypatch.delenv("TF_CONFIG")
    assert tf.distribute.MultiWorkerMirroredStrategy().cluster_resolver.task_type is None
