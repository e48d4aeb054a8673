"""One call of ``tf.raw_ops``: the members compare their calls, and then the engine's collective moves the data.

The comparison also tells receivers who sends. Source: TensorFlow 2.21, threads on four logical CPUs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple, NoReturn, TypeVar

import torch

from collshim import world
from collshim.communicator import Communicator
from collshim.errors import CollshimError
from collshim.tensorflow.errors import OpError, invalid_argument, mismatch, raise_as_tensorflow, shape_mismatch
from collshim.tensorflow.raw_ops.groups import KeyedGroup, refused
from collshim.work import Work

_R = TypeVar("_R")

_FIELDS = {
    "kind": "the kind of collective",
    "group_key": "group_key",
    "instance": "instance_key",
    "dtype": "dtype",
    "reduction": "merge_op and final_op",
}


class Request(NamedTuple):
    """What a member tells the others about its call.

    Attributes:
        kind: the kind of collective.
        group_key: the group's key.
        instance: the instance key, or the number of the call.
        dtype: the name of the dtype.
        is_named: whether the instance is a key, which may be that of an earlier call.
        reduction: the merge and the final operation of a reduction.
        shape: the shape of the member's tensor.
        value: what the others need to know of this member: whether it sends, or its rank.
    """

    kind: str
    group_key: int
    instance: str
    dtype: str = ""
    is_named: bool = True
    reduction: str = ""
    shape: tuple[int, ...] = ()
    value: int = 0


class Members:
    """The members of a group during one call, whose requests fit together.

    Attributes:
        communicator: their communicator.
        requests: their requests, in order.
        limit: the time at which the call must be over; None for the communicator's own limit.
    """

    def __init__(self, communicator: Communicator, requests: Sequence[Request], limit: float | None) -> None:
        self.communicator = communicator
        self.requests = requests
        self.limit = limit

    def result(self, work: Work[_R]) -> _R:
        """Wait for a collective of this call."""
        return work.wait(_left(self.limit))


def run(op: str, group: KeyedGroup, request: Request, act: Callable[[Members], _R], timeout: float | None) -> _R:
    """Compare the members' requests, and return the result of ``act`` if they fit together.

    Raises:
        InternalError: the kinds of collectives, instance keys or dtypes differ, or from an earlier call of this key.
        InvalidArgumentError: the shapes or the reductions differ, or the shapes from an earlier call of this key.
        DeadlineExceededError: a member did not arrive in time.
    """
    limit = None if timeout is None else time.monotonic() + timeout
    with group.lock, ExitStack() as block:
        if world.peek() is not group.world:
            block.enter_context(world.use(group.world))
        try:
            communicator = group.communicator(op, timeout)
            requests = communicator.all_gather_object(request).wait(_left(limit))
            _require_fitting(op, requests)
            if request.is_named:
                _require_the_same(op, group, request)
            return act(Members(communicator, requests, limit))
        except CollshimError as error:
            _raise(op, error)


def reduced(members: Members, tensor: torch.Tensor, op: str, *, divides: bool) -> torch.Tensor:
    """Return the reduction of all members' tensors, divided by their number if wanted; integers lose the fraction."""
    total = members.result(members.communicator.all_reduce(tensor, op))
    if not divides:
        return total
    count = members.communicator.size
    return torch.div(total, count) if total.is_floating_point() else torch.div(total, count, rounding_mode="trunc")


def gathered(members: Members, tensor: torch.Tensor) -> torch.Tensor:
    """Return all members' tensors, concatenated along axis 0."""
    return members.result(members.communicator.all_gather(tensor)).flatten(0, 1)


def broadcast(members: Members, tensor: torch.Tensor, op: str) -> torch.Tensor:
    """Return the tensor of the one member that sends.

    Raises:
        InternalError: no member sends, or several do.
    """
    senders = [rank for rank, request in enumerate(members.requests) if request.value]
    if len(senders) != 1:
        found = (
            f"already has source {senders[0]}, received second claim from {senders[1]}"
            if senders
            else ("found no source for broadcast. This could mean that there were BcastRecvs but no BcastSend.")
        )
        raise refused(f"{op}: Instance {members.requests[0].instance} {found}")
    return members.result(members.communicator.broadcast(tensor, senders[0]))


def exchanged(members: Members, tensor: torch.Tensor, op: str) -> torch.Tensor:
    """Return the members' rows for this member; each has one row for each member.

    Raises:
        InvalidArgumentError: there are not as many rows as members.
    """
    rows, size = tensor.shape[0] if tensor.dim() else 0, members.communicator.size
    if rows != size:
        raise invalid_argument(
            f"{op}: input to all-to-all first dimension size ({rows}) must be the same as the group size ({size})"
        )
    received: torch.Tensor = members.result(members.communicator.all_to_all(tensor))
    return received


def _require_fitting(op: str, requests: Sequence[Request]) -> None:
    for field, name in _FIELDS.items():
        values = [getattr(request, field) for request in requests]
        if len(set(values)) > 1:
            listed = ", ".join(f"rank {rank} of the group has {value}" for rank, value in enumerate(values))
            make = mismatch if field == "reduction" else refused
            raise make(f"{op}: Collective instance {requests[0].instance}: the members disagree on {name}: {listed}")
    shapes = [list(request.shape) for request in requests]
    if any(shape != shapes[0] for shape in shapes):
        raise shape_mismatch(f"{op}: the members of the group have shapes {shapes}, must have the same")


def _require_the_same(op: str, group: KeyedGroup, request: Request) -> None:
    """Refuse a call unlike the group's first one with this instance key; all members have made the same calls."""
    kind, dtype, shape = group.instances.setdefault(request.instance, (request.kind, request.dtype, request.shape))
    earlier = f"{op}: Collective instance {request.instance} was {kind} of {dtype} {list(shape)} before"
    if (kind, dtype) != (request.kind, request.dtype):
        raise refused(f"{earlier}, got {request.kind} of {request.dtype}")
    if shape != request.shape:
        raise shape_mismatch(f"{earlier}, got {list(request.shape)}")


def _left(limit: float | None) -> float | None:
    return None if limit is None else max(0.0, limit - time.monotonic())


def _raise(op: str, error: CollshimError) -> NoReturn:
    """Raise an engine's error as TensorFlow's class, with the operation's name before its text."""
    if isinstance(error, OpError):
        raise error
    told = type(error)(f"{op}: {error}")
    told.__cause__ = error
    raise_as_tensorflow(told)
