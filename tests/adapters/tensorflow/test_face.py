"""Names, signatures and small classes, as TensorFlow 2.21 has them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

RUN = "(self, fn, args=(), kwargs=None, options=None)"
SIGNATURES = {
    "MirroredStrategy": "(devices=None, cross_device_ops=None)",
    "MultiWorkerMirroredStrategy": "(cluster_resolver=None, communication_options=None)",
    "OneDeviceStrategy": "(device)",
    "NcclAllReduce": "(num_packs=1)",
    "HierarchicalCopyAllReduce": "(num_packs=1)",
    "ReductionToOneDevice": "(reduce_to_device=None, accumulation_fn=None)",
    "CrossDeviceOps": "()",
    "DistributedValues": "()",
    "CrossDeviceOps.reduce": "(self, reduce_op, per_replica_value, destinations, options=None)",
    "CrossDeviceOps.batch_reduce": "(self, reduce_op, value_destination_pairs, options=None)",
    "CrossDeviceOps.broadcast": "(self, tensor, destinations)",
    "ReplicaContext": "(strategy, replica_id_in_sync_group)",
    "ReplicaContext.all_gather": "(self, value, axis, options=None)",
    "ReplicaContext.all_reduce": "(self, reduce_op, value, options=None)",
    "ReplicaContext.merge_call": "(self, merge_fn, args=(), kwargs=None)",
    "RunOptions": "(experimental_enable_dynamic_batch_size=True, experimental_bucketizing_dynamic_shape=False, "
    "experimental_xla_options=None)",
    "Strategy": "(extended)",
    "Strategy.run": RUN,
    "MirroredStrategy.run": RUN,
    "Strategy.reduce": "(self, reduce_op, value, axis)",
    "Strategy.gather": "(self, value, axis)",
    "Strategy.scope": "(self)",
    "Strategy.experimental_local_results": "(self, value)",
    "Strategy.experimental_distribute_values_from_function": "(self, value_fn)",
    "StrategyExtended": "(container_strategy)",
    "StrategyExtended.reduce_to": "(self, reduce_op, value, destinations, options=None)",
    "StrategyExtended.batch_reduce_to": "(self, reduce_op, value_destination_pairs, options=None)",
    "experimental.CommunicationOptions": "(*args, **kwargs)",
    "experimental.ValueContext": "(replica_id_in_sync_group=0, num_replicas_in_sync=1)",
    "experimental_set_strategy": "(strategy)",
    "get_replica_context": "()",
    "get_strategy": "()",
    "has_strategy": "()",
    "in_cross_replica_context": "()",
}


def signature_of(path: str) -> str:
    found: Any = tf.distribute
    for name in path.split("."):
        found = getattr(found, name)
    bare = inspect.signature(found)
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in bare.parameters.values()]
    return str(bare.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


@pytest.mark.parametrize(("path", "wanted"), SIGNATURES.items())
def test_signatures_are_tensorflows(path: str, wanted: str) -> None:
    assert signature_of(path) == wanted


def test_every_name_of_the_face_resolves() -> None:
    for module in (tf, tf.distribute, tf.distribute.experimental):
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("module", [tf, tf.distribute])
def test_a_name_that_is_not_covered_says_what_is(module: Any) -> None:
    with pytest.raises(AttributeError, match=r"no 'TPUStrategy'; it covers .*"):
        _ = module.TPUStrategy


def test_reduce_operations_look_like_tensorflows() -> None:
    assert [(op.name, op.value, repr(op), str(op)) for op in tf.distribute.ReduceOp] == [
        ("SUM", "SUM", "<ReduceOp.SUM: 'SUM'>", "ReduceOp.SUM"),
        ("MEAN", "MEAN", "<ReduceOp.MEAN: 'MEAN'>", "ReduceOp.MEAN"),
    ]


def test_communication_options_hold_what_they_were_given() -> None:
    options = tf.distribute.experimental.CommunicationOptions(1, timeout_seconds=2.5, implementation="ring")
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    assert (options.bytes_per_pack, options.timeout_seconds, options.implementation) == (1, 2.5, ring)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bytes_per_pack": -1}, r"^Argument `bytes_per_pack` must be >=0, Received -1\.$"),
        ({"implementation": 3}, r"^Argument `implementation` must be instance of `tf\.distribute\.experimental\."),
        ({"implementation": "foo"}, "^'FOO' is not a valid CommunicationImplementation$"),
    ],
)
def test_communication_options_refuse_what_they_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tf.distribute.experimental.CommunicationOptions(**given)


def test_operation_errors_are_exceptions_of_their_own() -> None:
    error = tf.errors.InvalidArgumentError(None, None, "text")
    assert isinstance(error, tf.errors.OpError)
    assert isinstance(error, collshim.CollshimError)
    assert not isinstance(error, ValueError | RuntimeError)
    assert (error.message, str(error), error.error_code) == ("text", "text", 3)


def test_components_are_shown_line_by_line() -> None:
    value = mirrored(2).experimental_distribute_values_from_function(lambda ctx: str(ctx.replica_id_in_sync_group))
    assert repr(value) == "PerReplica:{\n  0: '0',\n  1: '1'\n}"
    assert str(value) == "PerReplica:{\n  0: 0,\n  1: 1\n}"
