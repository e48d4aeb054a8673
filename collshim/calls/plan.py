"""``Plan``: a validated call, remembered, so that a call like it is neither validated nor prepared again.

A plan holds the facts that follow from the metadata of a call's arrays, and a carrier, which belongs to the transport.
A ``Recognizer`` finds out whether the arrays of a later call fit the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.accelerator import ACCELERATOR
from collshim.calls.agreement import signature
from collshim.calls.call import Call
from collshim.calls.collective import ALL_GATHER, GATHER, MESSAGES
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.work import Work

KEPT = 1024
"""Plans that a communicator keeps."""

RAGGED = "ragged"
"""Takes the place of the reduce operation in the key of a plan that gathers arrays of unequal shapes."""

Start = Callable[["Plan", "Parts | None", "Parts | None", "Caller | None"], Work[Any]]
"""See ``Transport.start``."""

InLine = Callable[["Parts | None", "Parts | None", "Caller | None", "float | None"], Work[Any]]
"""Starts a call with its inputs and outputs, where it was called, and its deadline; a complete or a failed work."""


class Carrier:
    """The part of a plan that belongs to its transport; each transport has a class of its own.

    Attributes:
        start: starts such a call faster than ``Transport.start``; None if nothing does.
        in_line: starts such a call on a GPU in the stream of a caller that waits at once; None if nothing does, or if
            the ranks compare the call.
        takes_lists: whether the transport takes several tensors in a list, as they are.
    """

    __slots__ = ()

    start: Start | None = None
    in_line: InLine | None = None
    takes_lists = False


class Plan:
    """What a validated call needs to be started again on this rank.

    Attributes:
        call: the call, without the line it was made at.
        collective: its record.
        is_message: whether it is a send or a recv.
        device: where this rank's arrays are; ``on_cpu``: whether that is the CPU.
        rank, size: this rank in its group, and the group's size.
        gives, gives_parts, gets: whether this rank gives data, one part per rank, and whether it gets a result.
        part: the shape of this rank's tensor, or of each of its parts; None if they are unequal, or unknown.
        shape: the result's, rank-leading if it has parts; None if it comes part by part, or is unknown.
        input_shape: the shape of this rank's input, if that is one array.
        signature: what calls that agree without a closer look have in common; None for a call that needs one.
        carrier: the transport's part of the plan.
    """

    __slots__ = (
        "call", "carrier", "collective", "device", "gets", "gives", "gives_parts", "input_shape", "is_message",
        "on_cpu", "part", "rank", "shape", "signature", "size",
    )  # fmt: skip

    carrier: Any

    def __init__(self, call: Call, device: torch.device, rank: int, size: int) -> None:
        collective = call.collective
        self.call = call
        self.collective = collective
        self.is_message = collective in MESSAGES
        self.device = device
        self.on_cpu = device.type == "cpu"
        self.rank = rank
        self.size = size
        self.gives = collective.gives_on(rank, call.root)
        self.gives_parts = self.gives and collective.gives == "parts"
        self.gets = collective.gets_on(rank, call.root)
        self.part = call.sends[0] if call.sends and call.is_uniform else call.shape
        is_known = call.sends is None and call.expects is None and call.shape is not None and not call.discovers
        self.shape = collective.result_shape(call.shape or (), size) if is_known else None
        self.input_shape = (size, *(self.part or ())) if self.gives_parts else self.part
        discovers = call.discovers and not gathers_ragged(call)
        common = None if call.nan or discovers else signature(call)
        self.signature = None if common is None else (*common, call.needs_grad)
        self.carrier = Carrier()


def is_plain(call: Call) -> bool:
    """Whether ``dense`` sees all of another such call's arrays that its metadata do not say."""
    if call.dtype is None or call.dtype.is_complex or call.device not in ("cpu", ACCELERATOR):
        return False
    return not (call.needs_grad or call.nan or call.factor is not None)


def recurs(call: Call) -> bool:
    """Whether the metadata of one array, or of a list of equal ones, tell all calls like this one."""
    if call.content or not is_plain(call):
        return False
    if call.discovers:
        return gathers_ragged(call)
    if call.sends is None and call.expects is None:
        return call.shape is not None
    return call.is_uniform


def gathers_ragged(call: Call) -> bool:
    """Whether the call gathers arrays of unequal shapes. This rank's own array identifies such a call."""
    return call.discovers and call.expects == () and call.collective in (ALL_GATHER, GATHER)
