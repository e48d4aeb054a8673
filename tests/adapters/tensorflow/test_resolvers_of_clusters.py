"""Unions of clusters, those of Slurm, and the numbers of parts of variables, as in TensorFlow 2.21."""

from __future__ import annotations

import os

import pytest

import collshim.tensorflow as tf

resolvers = tf.distribute.cluster_resolver
Spec = tf.train.ClusterSpec


def simple(cluster: object, **more: object) -> object:
    return resolvers.SimpleClusterResolver(Spec(cluster), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ({"ps": ["p:1"]}, {"worker": ["w:1"]}, {"ps": ["p:1"], "worker": ["w:1"]}),
        ({"worker": ["a:1"]}, {"worker": ["b:1"]}, {"worker": ["a:1", "b:1"]}),
        ({"worker": {1: "a:1"}}, {"worker": ["b:1"]}, {"worker": ["b:1", "a:1"]}),
    ],
)
def test_unions_join_lists_and_merge_numbers(first: object, second: object, whole: object) -> None:
    assert resolvers.UnionResolver(simple(first), simple(second)).cluster_spec().as_dict() == whole


def test_unions_answer_as_their_first_resolver_unless_told() -> None:
    first = simple({"worker": ["a:1", "b:1"]}, task_type="worker", task_id=1, environment="e", rpc_layer="grpc")
    union = resolvers.UnionResolver(first, simple({"ps": ["p:1"]}), task_id=3)
    assert (union.task_type, union.task_id, union.environment, union.rpc_layer) == ("worker", 3, "e", "grpc")
    assert union.master("ps", 0, rpc_layer="http") == "http://p:1"
    union.task_type = "ps"
    assert union.task_type == "ps"


def test_unions_refuse_nothing_strangers_and_equal_numbers() -> None:
    with pytest.raises(ValueError, match="At least one ClusterResolver"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="sub-class of `ClusterResolver"):
        resolvers.UnionResolver(3)
    twice = resolvers.UnionResolver(simple({"worker": {1: "a:1"}}), simple({"worker": {1: "b:1"}}))
    with pytest.raises(KeyError, match="Duplicate keys detected"):
        twice.cluster_spec()


STEP = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "5",
    "SLURM_STEP_TASKS_PER_NODE": "1(x2),2,1",
    "SLURM_STEP_NODELIST": "t02n[13,41,43,50]",
}


def test_a_step_of_slurm_fills_its_hosts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**STEP, "CUDA_VISIBLE_DEVICES": "0,1,2,3"}.items():
        monkeypatch.setenv(name, value)
    resolver = resolvers.SlurmClusterResolver({"ps": 1, "worker": 4}, gpus_per_task=1)
    hosts = ["t02n41:8888", "t02n43:8888", "t02n43:8889", "t02n50:8888"]
    assert resolver.cluster_spec().as_dict() == {"ps": ["t02n13:8888"], "worker": hosts}
    assert (resolver.get_task_info(), os.environ["CUDA_VISIBLE_DEVICES"]) == (("worker", 2), "1")
    assert (resolver.master(), resolver.num_accelerators()) == ("grpc://t02n43:8889", {"GPU": 1})


@pytest.mark.parametrize(
    ("changes", "text"),
    [({"SLURM_PROCID": ""}, "SLURM_PROCID not found"), ({"SLURM_STEP_NUM_TASKS": "9"}, "only 5 were assigned")],
)
def test_a_step_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], text: str
) -> None:
    for name, value in {**STEP, **changes}.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match=text):
        resolvers.SlurmClusterResolver(gpus_per_node=2, gpus_per_task=1)


@pytest.mark.parametrize("hosts", ["n[", "n[1-]x", "n[a-b]"])
def test_hosts_in_another_form_are_refused(monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
    for name, value in {**STEP, "SLURM_STEP_NODELIST": hosts}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="Invalid hostlist format"):
        resolvers.SlurmClusterResolver()


def test_clusters_become_messages_and_return() -> None:
    cluster = Spec({"ps": ["p:1"], "worker": {3: "w:1"}})
    message = cluster.as_cluster_def()
    assert 'name: "ps"' in str(message)
    assert Spec(message) == cluster == {"ps": {0: "p:1"}, "worker": {3: "w:1"}}


@pytest.mark.parametrize("cluster", [3, {"a": 3}, {3: ["x"]}, {"a": [3]}])
def test_clusters_of_other_types_are_refused(cluster: object) -> None:
    with pytest.raises(TypeError, match=r"must be"):
        Spec(cluster)  # type: ignore[arg-type]


def test_partitioners_count_the_parts_of_an_axis() -> None:
    parts = tf.distribute.experimental.partitioners
    shape = tf.TensorShape([6, 1])
    assert parts.FixedShardsPartitioner(2)(tf.TensorShape([10, 3]), tf.float32, 1) == [1, 2]
    assert parts.MinSizePartitioner(4, 2)(shape, tf.float32) == [2, 1]
    assert parts.MinSizePartitioner(4, 10)(shape, tf.float32) == [6, 1]
    assert parts.MaxSizePartitioner(4)(shape, tf.float32) == [6, 1]
    assert parts.MaxSizePartitioner(4, max_shards=2)(shape, tf.float32) == [2, 1]
    assert parts.MaxSizePartitioner(1024)(shape, tf.float32) == [1, 1]
    with pytest.raises(ValueError, match="`min_shard_bytes` must be positive"):
        parts.MinSizePartitioner(0)
    with pytest.raises(NotImplementedError):
        parts.Partitioner()(shape, tf.float32)
