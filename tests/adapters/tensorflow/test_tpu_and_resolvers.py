"""``SimpleClusterResolver`` matches TensorFlow 2.21; strategies for TPUs use local devices."""

from __future__ import annotations

from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf

SPEC = tf.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": ["c:3"]})
Simple = tf.distribute.cluster_resolver.SimpleClusterResolver


@pytest.mark.parametrize(
    ("arguments", "call", "wanted"),
    [
        ({"rpc_layer": "grpc"}, (), "grpc://"),
        ({"rpc_layer": "grpc"}, ("ps", 0), "grpc://c:3"),
        ({"rpc_layer": "grpc"}, ("ps", 0, "http"), "http://c:3"),
        ({}, (), ""),
        ({"master": "x:1", "rpc_layer": "grpc"}, (), "grpc://x:1"),
    ],
)
def test_master_strings_match_tensorflow(arguments: dict[str, Any], call: tuple[Any, ...], wanted: str) -> None:
    assert Simple(SPEC, **arguments).master(*call) == wanted


def test_resolver_returns_its_arguments() -> None:
    found = Simple(SPEC, task_type="worker", task_id=1, environment="google", num_accelerators={"GPU": 2})
    assert (found.task_type, found.task_id, found.environment, found.rpc_layer) == ("worker", 1, "google", None)
    assert (found.num_accelerators(), found.cluster_spec() == SPEC) == ({"GPU": 2}, True)


def test_resolver_refuses_an_invalid_cluster() -> None:
    with pytest.raises(TypeError, match=r"cluster_spec must be a `tf.train.ClusterSpec`\."):
        Simple([1])  # type: ignore[arg-type]


def test_cluster_can_be_copied() -> None:
    assert tf.train.ClusterSpec(SPEC) == SPEC


def test_tpu_strategy_takes_local_devices() -> None:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    with collshim.options(device="cpu", devices=2):
        strategy = tf.distribute.TPUStrategy(resolver)
        names = [device.name for device in tf.config.list_logical_devices("GPU")]
    assert (strategy.num_replicas_in_sync, names) == (2, ["/device:GPU:0", "/device:GPU:1"])
    assert [float(x) for x in strategy.run(lambda: number() + 1).values] == [1.0, 2.0]


def number() -> Any:
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def test_tpu_assignments_are_refused() -> None:
    with pytest.raises(ValueError, match="name devices in a MirroredStrategy"):
        tf.distribute.TPUStrategy(experimental_spmd_xla_partitioning=True)
