"""The operations of ``tf.raw_ops`` on communicators, and the numbers of groups. Source: TensorFlow 2.21."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch

from collshim.errors import ArgumentError, also
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import AlreadyExistsError, UnimplementedError, invalid_argument
from collshim.tensorflow.raw_ops import arguments, exchange
from collshim.tensorflow.raw_ops.arguments import keyword_only
from collshim.tensorflow.raw_ops.calls import KeyedCall, data_of, request_of
from collshim.tensorflow.raw_ops.exchange import Request
from collshim.tensorflow.raw_ops.groups import Handle
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name


class AssignedGroup(NamedTuple):
    """The result of ``CollectiveAssignGroupV2``."""

    group_size: Tensor
    group_key: Tensor


@keyword_only
def CollectiveReduceV3(
    input: Any, communicator: Any, group_assignment: Any, reduction: Any, timeout_seconds: Any = 0, name: Any = None
) -> Any:
    """Return the reduction of the tensors of a communicator's members; ``group_assignment`` must be empty.

    Raises:
        tf.errors.UnimplementedError: ``group_assignment`` is not empty; TensorFlow refuses it too.
    """
    op = "CollectiveReduceV3"
    tensor = arguments.tensor_of(op, input, arguments.REDUCED)
    merge_op = arguments.choice_of(op, "reduction", reduction, list(arguments.MERGE_OPS))
    handle = _handle_of(op, communicator, group_assignment)
    act = partial(exchange.reduced, tensor=data_of(tensor), op=arguments.MERGE_OPS[merge_op], divides=False)
    return arguments.without_gradient(op, tensor, _run_numbered(op, "reduce", handle, tensor, act, timeout_seconds))


@keyword_only
def CollectiveAllToAllV3(
    input: Any, communicator: Any, group_assignment: Any, timeout_seconds: Any = 0, name: Any = None
) -> Any:
    """Send row r of the tensor to member r; return the members' rows for this one, in the order of their ranks.

    ``group_assignment`` must be empty. The members are ordered as in ``CollectiveAllToAllV2``, not by their ranks.

    Raises:
        tf.errors.UnimplementedError: ``group_assignment`` is not empty; TensorFlow refuses it too.
    """
    op = "CollectiveAllToAllV3"
    tensor = arguments.tensor_of(op, input, arguments.REDUCED)
    handle = _handle_of(op, communicator, group_assignment)
    act = partial(exchange.exchanged, tensor=data_of(tensor), op=op)
    rows = _run_numbered(op, "all_to_all", handle, tensor, act, timeout_seconds)
    return arguments.without_gradient(op, tensor, rows[torch.tensor(handle.ranks).argsort()])


@keyword_only
def CollectiveInitializeCommunicator(
    group_key: Any,
    rank: Any,
    group_size: Any,
    communication_hint: Any = "auto",
    timeout_seconds: Any = 0,
    name: Any = None,
) -> Any:
    """Return a communicator, for the operations V3, of the group of a key; wait for its members.

    Raises:
        tf.errors.InvalidArgumentError: the rank is negative, or not less than ``group_size``, or of two members.
        tf.errors.AlreadyExistsError: the member has a communicator of this group.
    """
    op = "CollectiveInitializeCommunicator"
    number = arguments.input_int(op, "rank", rank)
    call = KeyedCall(op, arguments.input_int, group_size, group_key, 0, communication_hint, timeout_seconds)
    if number < 0:
        raise invalid_argument(f"{op}: rank must be non-negative integer but got {number}")
    if number >= call.size:
        raise invalid_argument(f"{op}: rank must be less than group size but got {number} >= {call.size}")
    return _communicator(op, call, number)


@keyword_only
def CollectiveAssignGroupV2(group_assignment: Any, device_index: Any, base_key: Any, name: Any = None) -> Any:
    """Return the size and the key of the group that has a device: the key is ``base_key`` plus the group's number.

    Args:
        group_assignment: an int32 tensor with a row for each group, of its devices' numbers.
        device_index: the number of the device.
        base_key: the key of the first group.

    Raises:
        tf.errors.InvalidArgumentError: no row has the device, or the key is 0.
    """
    op = "CollectiveAssignGroupV2"
    rows = _int32(op, 0, group_assignment)
    if rows.dim() != 2:
        raise invalid_argument(f"{op}: group_assignment must be a 2-d Tensor, but received shape {list(rows.shape)}")
    device, base = (
        _scalar(op, place, which, value)
        for place, which, value in ((1, "device_index", device_index), (2, "base_key", base_key))
    )
    for group, members in enumerate(rows.tolist()):
        key = (base + group + 2**31) % 2**32 - 2**31
        if key == 0:  # whichever group has the device, of those from here on
            raise invalid_argument(
                f"{op}: Using the reserved group_key = 0 is not allowed: group_id = {group}, base_key = {base}"
            )
        if device in members:
            size, number = (adopt(torch.tensor(value, dtype=torch.int32)) for value in (rows.shape[1], key))
            return AssignedGroup(size, number)
    raise invalid_argument(f"{op}: device_index {device} is not found in group_assignment {rows.tolist()}")


def _communicator(op: str, call: KeyedCall, rank: int) -> Handle:
    group = call.group()
    with group.lock:
        if group.is_named:
            raise also(ArgumentError, AlreadyExistsError)(
                None, None, f"{op}: {group.member()} has a communicator of group {group.key} already"
            )
        request = Request("communicator", 0, "", is_named=False, value=rank)
        ranks = call.run(request, lambda members: [one.value for one in members.requests])
        if len(set(ranks)) < len(ranks):
            text = ",".join(map(str, ranks))
            raise invalid_argument(f"{op}: Duplicate ranks specified for group members. Received ranks: {text}")
        group.is_named = True
        return Handle(group, ranks, rank)


def _run_numbered(op: str, kind: str, handle: Handle, tensor: torch.Tensor, act: Any, timeout_seconds: Any) -> Any:
    """Make the next call of a communicator; its number is what an instance key is to a group with a key."""
    timeout = arguments.seconds_of(op, timeout_seconds)
    with handle.group.lock:
        handle.calls += 1
        instance = f"number {handle.calls}"
        request = request_of(kind, tensor)._replace(group_key=handle.group.key, instance=instance, is_named=False)
        return exchange.run(op, handle.group, request, act, timeout)


def _handle_of(op: str, communicator: Any, group_assignment: Any) -> Handle:
    if not isinstance(communicator, Handle):
        raise invalid_argument(
            f"{op}: communicator is {communicator!r}, should be a result of CollectiveInitializeCommunicator"
        )
    assignment = _int32(op, 2, group_assignment)
    if assignment.numel():
        raise also(ArgumentError, UnimplementedError)(
            None,
            None,
            f"{op}: group_assignment is {assignment.tolist()}, should be empty: Group assignments are not "
            "supported yet.",
        )
    return communicator


def _int32(op: str, place: int, value: Any) -> torch.Tensor:
    """Return an input that is an int32 tensor; refuse tensors of another dtype with TensorFlow's class."""
    dtype = getattr(value, "dtype", torch.int32)
    if isinstance(value, torch.Tensor) and dtype is not torch.int32:
        raise invalid_argument(
            f"{op}: input #{place}(zero-based) was expected to be a int32 tensor but is a {dtype_name(dtype)} tensor"
        )
    return convert_to_tensor(value, torch.int32)


def _scalar(op: str, place: int, argument: str, value: Any) -> int:
    tensor = _int32(op, place, value)
    if tensor.dim():
        raise invalid_argument(f"{op}: {argument} must be a scalar, but received shape {list(tensor.shape)}")
    return int(tensor)
