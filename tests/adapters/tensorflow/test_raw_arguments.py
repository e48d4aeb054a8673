"""Arguments that ``tf.raw_ops`` refuses; expected errors are TensorFlow 2.21's on a CPU."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.test_raw_collectives import INTERNAL, INVALID, KEYS, REDUCTION, TOKENS, communicator

pytestmark = [pytest.mark.unranked, pytest.mark.usefixtures("four_cpus")]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"merge_op": "Foo"}, INVALID, '\'merge_op\' of "Foo" is not in the list of allowed values: "Min", "Max"'),
        ({"final_op": "Foo"}, INVALID, '\'final_op\' of "Foo" is not in the list of allowed values: "Id", "Div"'),
        ({"merge_op": None}, TypeError, "Expected string for argument 'merge_op' not None"),
        ({"communication_hint": 3}, TypeError, "Expected string for argument 'communication_hint'"),
        ({"group_size": 0}, INVALID, "group_size must be positive integer but got 0"),
        ({"group_key": [1]}, INVALID, r"Unexpected dimensions on input group_key, got \[1\]"),
        ({"group_key": 1.5}, TypeError, "1.5"),
        ({"instance_key": tf.constant(1, tf.int64)}, ValueError, "requested dtype int32"),
        ({"timeout_seconds": "a"}, TypeError, "Expected float for argument 'timeout_seconds' not 'a'"),
        ({"ordering_token": 3}, TypeError, "Expected list for 'ordering_token' argument"),
        ({"ordering_token": [tf.constant(1.0)]}, ValueError, "requested dtype resource"),
        ({"input": None}, ValueError, "input is None"),
        ({"input": [True]}, INVALID, "'T' of bool is not in the list of allowed values: bfloat16, float, half, double"),
        ({"unknown": 1}, TypeError, "unexpected keyword argument 'unknown'"),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        tf.raw_ops.CollectiveReduceV2(**{"input": [1], "group_size": 1, **REDUCTION, **arguments})


def test_further_refused_arguments() -> None:
    raw, one = tf.raw_ops, {"group_size": 1, **KEYS}
    with pytest.raises(TypeError, match=r"CollectiveGather only takes keyword args \(possible keys: \['input', "):
        raw.CollectiveGather([1], 1, 1, 1, [1])
    with pytest.raises(INVALID, match="input should have rank > 0, received 0"):
        raw.CollectiveGatherV2(input=1, group_size=1, **TOKENS)
    with pytest.raises(INVALID, match="bfloat16 is not in the list of allowed values: float, half"):
        raw.CollectiveGather(input=tf.cast([1], tf.bfloat16), **one, shape=[1])
    with pytest.raises(TypeError, match="Expected int for argument 'group_key' not 'a'"):
        raw.CollectiveGather(input=[1], group_size=1, group_key="a", instance_key=1, shape=[1])
    with pytest.raises(INVALID, match="Attr group_key has value 1099511627776 out of range for an int32"):
        raw.CollectiveGather(input=[1], group_size=1, group_key=2**40, instance_key=1, shape=[1])
    with pytest.raises(TypeError, match="Expected list for 'wait_for'"):
        raw.CollectiveReduce(input=[1], **one, merge_op="Add", final_op="Id", subdiv_offsets=[], wait_for=1)
    with pytest.raises(TypeError, match="Expected DataType for argument 'T' not 'foo'"):
        raw.CollectiveBcastRecv(T="foo", **one, shape=[1])
    for shape, text in ([-1], "Dimension -1 must be >= 0"), ([1.5], "'Tshape' of float"), (1, "must be a vector"):
        with pytest.raises(INVALID, match=text):
            raw.CollectiveBcastRecvV2(T=tf.int32, **one, shape=shape)
    with pytest.raises(INTERNAL, match="did not find collective implementation"):
        raw.CollectiveReduceScatterV2(input=[1], group_size=1, **REDUCTION)


def test_refused_communicators() -> None:
    raw = tf.raw_ops
    for rank, text in (-1, "must be non-negative integer but got -1"), (2, "less than group size but got 2 >= 2"):
        with pytest.raises(INVALID, match=text):
            communicator(rank)
    with pytest.raises(INVALID, match="should be a result of CollectiveInitializeCommunicator"):
        raw.CollectiveReduceV3(input=[1], communicator=None, group_assignment=[], reduction="Add")
    handle = raw.CollectiveInitializeCommunicator(group_key=77, rank=0, group_size=1)
    with pytest.raises(tf.errors.UnimplementedError, match="Group assignments are not supported yet"):
        raw.CollectiveAllToAllV3(input=[1], communicator=handle, group_assignment=[[0]])


@pytest.mark.parametrize(
    ("assignment", "index", "base", "text"),
    [
        ([[0, 1], [2, 3]], 5, 1, "device_index 5 is not found in group_assignment"),
        ([0, 1], 0, 1, r"must be a 2-d Tensor, but received shape \[2\]"),
        ([[0], [1]], 1, 0, "reserved group_key = 0 is not allowed: group_id = 0, base_key = 0"),
        ([[0]], [0], 1, r"device_index must be a scalar, but received shape \[1\]"),
        (tf.constant([[0]], tf.int64), 0, 1, "input #0.* was expected to be a int32 tensor but is a int64 tensor"),
    ],
)
def test_refused_assignments(assignment: Any, index: Any, base: int, text: str) -> None:
    with pytest.raises(INVALID, match=text):
        tf.raw_ops.CollectiveAssignGroupV2(group_assignment=assignment, device_index=index, base_key=base)
