"""Names and small classes match TensorFlow 2.21."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from collshim.tensorflow.errors import mismatch
from tests.adapters.tensorflow.conftest import mirrored

pytestmark = pytest.mark.unranked


def test_every_public_name_resolves() -> None:
    for module in (tf, tf.distribute, tf.distribute.experimental, tf.distribute.cluster_resolver):
        assert all(hasattr(module, name) for name in module.__all__)


def test_reduce_op_repr_matches_tensorflow() -> None:
    assert [(op.name, op.value, repr(op), str(op)) for op in tf.distribute.ReduceOp] == [
        ("SUM", "SUM", "<ReduceOp.SUM: 'SUM'>", "ReduceOp.SUM"),
        ("MEAN", "MEAN", "<ReduceOp.MEAN: 'MEAN'>", "ReduceOp.MEAN"),
    ]


def test_communication_options_keep_their_arguments() -> None:
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
def test_communication_options_refuse_invalid_arguments(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tf.distribute.experimental.CommunicationOptions(**given)


def test_operation_errors_are_distinct_exceptions() -> None:
    error = tf.errors.InvalidArgumentError(None, None, "text")
    assert isinstance(error, tf.errors.OpError)
    assert isinstance(error, collshim.CollshimError)
    assert not isinstance(error, ValueError | RuntimeError)
    assert (error.message, str(error), error.error_code) == ("text", "text", 3)


CODES = {
    "CancelledError": 1,
    "UnknownError": 2,
    "InvalidArgumentError": 3,
    "DeadlineExceededError": 4,
    "NotFoundError": 5,
    "AlreadyExistsError": 6,
    "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8,
    "FailedPreconditionError": 9,
    "AbortedError": 10,
    "OutOfRangeError": 11,
    "UnimplementedError": 12,
    "InternalError": 13,
    "UnavailableError": 14,
    "DataLossError": 15,
    "UnauthenticatedError": 16,
}


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_operation_errors_have_tensorflow_codes(name: str, code: int) -> None:
    error = getattr(tf.errors, name)(None, None, "text", {"a": b"1"})
    assert isinstance(error, tf.errors.OpError)
    assert (error.error_code, error.experimental_payloads) == (code, {"a": b"1"})
    constant = "".join(f"_{letter}" if letter.isupper() else letter for letter in name[:-5]).upper().strip("_")
    assert getattr(tf.errors, constant) == code


@pytest.mark.parametrize(
    "error", [tf.errors.OpError(None, None, "text", 3), tf.errors.AbortedError(None, None, "text"), mismatch("text")]
)
def test_operation_errors_can_be_pickled(error: tf.errors.OpError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.error_code) == (type(error), "text", error.error_code)


def test_value_and_input_context_repr() -> None:
    shown = "tf.distribute.ValueContext(replica id 1,  total replicas in sync: 2)"
    assert str(tf.distribute.experimental.ValueContext(1, 2)) == shown
    found = tf.distribute.InputContext(2, 1, 4)
    assert (found.num_input_pipelines, found.input_pipeline_id, found.num_replicas_in_sync) == (2, 1, 4)
    assert str(found) == "tf.distribute.InputContext(input pipeline id 1, total: 2)"
    assert found.get_per_replica_batch_size(8) == 2
    with pytest.raises(ValueError, match="9 is not divisible by `num_replicas_in_sync` 4"):
        found.get_per_replica_batch_size(9)


def test_slices_have_the_shape_of_the_whole_tensor() -> None:
    rows, indices = torch.ones(1, 2), torch.tensor([0])
    assert tf.IndexedSlices(rows, indices, torch.tensor([5, 2])).shape == (5, 2)
    assert repr(tf.IndexedSlices(rows, indices).shape) == "TensorShape(None)"


def test_old_strategy_names_exist() -> None:
    strategy = mirrored(2)
    value = strategy.experimental_distribute_values_from_function(lambda ctx: ctx.replica_id_in_sync_group)
    assert strategy.unwrap(value) == (0, 1)
    assert strategy.unwrap([value]) == ([0], [1])
    assert strategy.group(value) is None
    assert strategy.group(5) == 5
    assert strategy.group(5, name="five") is None
    assert strategy.extended.value_container(value.values[0]) is value.values[0]
    assert strategy.extended.experimental_require_static_shapes is False


def test_components_are_shown_line_by_line() -> None:
    value = mirrored(2).experimental_distribute_values_from_function(lambda ctx: str(ctx.replica_id_in_sync_group))
    assert repr(value) == "PerReplica:{\n  0: '0',\n  1: '1'\n}"
    assert str(value) == "PerReplica:{\n  0: 0,\n  1: 1\n}"
