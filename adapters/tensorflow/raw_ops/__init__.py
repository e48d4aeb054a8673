"""``tf.raw_ops``: its collectives, by which members of a group with a number exchange tensors.

    total = tf.raw_ops.CollectiveReduceV2(
        input=tensor, group_size=2, group_key=1, instance_key=1, ordering_token=[], merge_op="Add", final_op="Id"
    )

A member is a rank, a replica, or, in a world of a single rank, the device that ``tf.device`` names. The first
``group_size`` members that call with a ``group_key`` are the group, ordered by their numbers. All of them must make the
same calls in the same order. Each operation takes keyword arguments only, and has no gradient.

Source: TensorFlow 2.21, threads on four logical CPUs; ``CollectiveReduceScatterV2`` exists only for GPUs there.
"""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentError, also
from collshim.tensorflow.errors import InternalError
from collshim.tensorflow.raw_ops import arguments
from collshim.tensorflow.raw_ops.arguments import keyword_only
from collshim.tensorflow.raw_ops.calls import KeyedCall
from collshim.tensorflow.raw_ops.communicators import (
    CollectiveAllToAllV3,
    CollectiveAssignGroupV2,
    CollectiveInitializeCommunicator,
    CollectiveReduceV3,
)

__all__ = [
    "CollectiveAllToAllV2",
    "CollectiveAllToAllV3",
    "CollectiveAssignGroupV2",
    "CollectiveBcastRecv",
    "CollectiveBcastRecvV2",
    "CollectiveBcastSend",
    "CollectiveBcastSendV2",
    "CollectiveGather",
    "CollectiveGatherV2",
    "CollectiveInitializeCommunicator",
    "CollectiveReduce",
    "CollectiveReduceScatterV2",
    "CollectiveReduceV2",
    "CollectiveReduceV3",
]


@keyword_only
def CollectiveReduce(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    merge_op: Any,
    final_op: Any,
    subdiv_offsets: Any,
    wait_for: Any = [],  # noqa: B006 (TensorFlow's default)
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Return the reduction of the members' tensors; ``CollectiveReduceV2`` with ints instead of tensors as keys.

    ``subdiv_offsets``, ``wait_for`` and ``communication_hint`` have no effect.
    """
    op = "CollectiveReduce"
    arguments.require_list(op, "subdiv_offsets", subdiv_offsets)
    arguments.require_list(op, "wait_for", wait_for)
    call = KeyedCall(
        op, arguments.attribute_int, group_size, group_key, instance_key, communication_hint, timeout_seconds
    )
    return call.reduce(input, merge_op, final_op)


@keyword_only
def CollectiveReduceV2(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    ordering_token: Any,
    merge_op: Any,
    final_op: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    is_stateless: Any = False,
    max_subdivs_per_device: Any = -1,
    name: Any = None,
) -> Any:
    """Return the elementwise reduction of the members' tensors.

    Args:
        input: a tensor of bfloat16, float16, 32, 64 or int32, 64, with the same shape and dtype on all members.
        group_size: the number of members.
        group_key: the number of the group.
        instance_key: the number of the call; the members compare it. A later call may have the same number, if it is
            of the same kind, dtype and shape.
        ordering_token: a list of resources; no effect.
        merge_op: "Add", "Mul", "Max" or "Min".
        final_op: "Id", or "Div" to divide by the number of members; integers lose the fraction.
        communication_hint: no effect, as ``is_stateless``, ``max_subdivs_per_device`` and ``name``.
        timeout_seconds: how long the call may take; 0 for the default.

    Raises:
        tf.errors.InvalidArgumentError: an argument is refused, or the members' shapes or ``merge_op`` differ.
        tf.errors.InternalError: the group is full, or has a different size; the members' dtypes or keys differ.
        tf.errors.DeadlineExceededError: a member did not arrive in time.
    """
    op = "CollectiveReduceV2"
    arguments.require_tokens(op, ordering_token)
    call = KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    return call.reduce(input, merge_op, final_op)


@keyword_only
def CollectiveGather(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    shape: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Return the members' tensors, concatenated along axis 0; ``shape`` has no effect, as in TensorFlow."""
    op = "CollectiveGather"
    arguments.attribute_shape(op, shape)
    call = KeyedCall(
        op, arguments.attribute_int, group_size, group_key, instance_key, communication_hint, timeout_seconds
    )
    return call.gather(input)


@keyword_only
def CollectiveGatherV2(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    ordering_token: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    is_stateless: Any = False,
    name: Any = None,
) -> Any:
    """Return the members' tensors, concatenated along axis 0 in the order of the members.

    The tensors have the same shape, at least one axis, and the dtype float16, 32, 64 or int32, 64. The other arguments
    and errors are those of ``CollectiveReduceV2``.
    """
    op = "CollectiveGatherV2"
    arguments.require_tokens(op, ordering_token)
    call = KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    return call.gather(input)


@keyword_only
def CollectiveBcastSend(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    shape: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Send a tensor of this shape to the members that call ``CollectiveBcastRecv``; return a copy of it."""
    op = "CollectiveBcastSend"
    stated = arguments.attribute_shape(op, shape)
    call = KeyedCall(
        op, arguments.attribute_int, group_size, group_key, instance_key, communication_hint, timeout_seconds
    )
    return call.send(input, stated)


@keyword_only
def CollectiveBcastSendV2(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Send a tensor to the members that call ``CollectiveBcastRecvV2``; return a copy of it.

    The dtype is bool, float16, 32, 64 or int32, 64. The other arguments and errors are those of ``CollectiveReduceV2``.

    Raises:
        tf.errors.InternalError: also if several members send.
    """
    op = "CollectiveBcastSendV2"
    call = KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    return call.send(input, None)


@keyword_only
def CollectiveBcastRecv(
    T: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    shape: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Return the tensor, of this shape and the dtype ``T``, of the member that calls ``CollectiveBcastSend``."""
    op = "CollectiveBcastRecv"
    stated = arguments.attribute_shape(op, shape)
    call = KeyedCall(
        op, arguments.attribute_int, group_size, group_key, instance_key, communication_hint, timeout_seconds
    )
    return call.receive(T, stated)


@keyword_only
def CollectiveBcastRecvV2(
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    shape: Any,
    T: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Return the tensor, of this shape and the dtype ``T``, of the member that calls ``CollectiveBcastSendV2``.

    Raises:
        tf.errors.InternalError: also if no member sends.
    """
    op = "CollectiveBcastRecvV2"
    call = KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    return call.receive(T, arguments.input_shape(op, shape))


@keyword_only
def CollectiveReduceScatterV2(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    ordering_token: Any,
    merge_op: Any,
    final_op: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    is_stateless: Any = False,
    max_subdivs_per_device: Any = -1,
    name: Any = None,
) -> Any:
    """Check the arguments and raise an error, as TensorFlow does on CPUs, for which it has no such operation.

    Raises:
        tf.errors.InternalError: the arguments are correct.
    """
    op = "CollectiveReduceScatterV2"
    arguments.require_tokens(op, ordering_token)
    KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    arguments.tensor_of(op, input, arguments.REDUCED)
    arguments.choice_of(op, "merge_op", merge_op, list(arguments.MERGE_OPS))
    arguments.choice_of(op, "final_op", final_op, arguments.FINAL_OPS)
    raise also(ArgumentError, InternalError)(
        None,
        None,
        f"{op}: TensorFlow has it for GPUs only, use CollectiveReduceV2 and a part of its result: "
        "CollectiveRegistry::Lookup did not find collective implementation",
    )


@keyword_only
def CollectiveAllToAllV2(
    input: Any,
    group_size: Any,
    group_key: Any,
    instance_key: Any,
    ordering_token: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    is_stateless: Any = False,
    name: Any = None,
) -> Any:
    """Send row r of the tensor to member r; return the members' rows for this one, in the order of the members.

    Axis 0 is as long as the group. The dtypes, the other arguments and errors are those of ``CollectiveReduceV2``.
    """
    op = "CollectiveAllToAllV2"
    arguments.require_tokens(op, ordering_token)
    call = KeyedCall(op, arguments.input_int, group_size, group_key, instance_key, communication_hint, timeout_seconds)
    return call.all_to_all(input)


__getattr__ = saying(__name__, "only the collectives are here: use tf's own functions, or torch's")
