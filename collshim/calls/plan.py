"""``Plan``: a validated call, kept so that a similar call is neither validated nor prepared again.

A plan holds the facts that follow from the metadata of a call's arrays, and a carrier, which belongs to the transport.
A ``Recognizer`` checks whether the arrays of a later call fit the plan.

A plan outlives its call. So it must not keep the caller's memory alive, nor rely on an address, since that memory might
have been freed and reused for another tensor. It holds metadata, and no memory except the transport's own: at most a
tensor of one element, from which results are allocated.
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
"""The number of plans that a communicator keeps."""

RAGGED = "ragged"
"""The value in place of the reduce operation in the key of a plan that gathers arrays of unequal shapes."""

Start = Callable[["Plan", "Parts | None", "Parts | None", "Caller | None"], Work[Any]]
"""See ``Transport.start``."""

InLine = Callable[["Plan", "Parts | None", "Parts | None", "Caller | None", "float | None"], Work[Any]]
"""Starts a call, given its plan, inputs, outputs, caller and deadline; returns a work that is complete or failed."""


class Carrier:
    """The part of a plan that belongs to its transport; each transport has its own subclass.

    Attributes:
        start: starts the plan's calls faster than ``Transport.start``; None if there is no faster way.
        in_line: starts the plan's calls for a caller that waits immediately: on a GPU in the caller's stream, and
            between processes of one host in the compiled core. None if that is not possible.
        make_repeat: makes the object that repeats such a call as a whole: see ``repeats.MakeRepeat``; None if that is
            not possible.
        takes_lists: whether the transport accepts several tensors in a list without a copy.
        takes_joined: whether it accepts parts that lie end to end without a reshape.
    """

    __slots__ = ()

    start: Start | None = None
    in_line: InLine | None = None
    make_repeat: Any = None
    takes_lists = False
    takes_joined = False


class Plan:
    """Everything needed to start a validated call again on this rank.

    Attributes:
        call: the call, without the line that made it.
        collective: its record.
        is_message: whether it is a send or a recv.
        device: the device of this rank's arrays; ``on_cpu``: whether that is the CPU.
        rank, size: this rank in its group, and the group's size.
        gives, gives_parts, gets: whether this rank has an input, whether that has one part per rank, and whether this
            rank receives a result.
        part: the shape of this rank's tensor, or of each of its parts; None if they are unequal or unknown.
        shape: the shape of the result, rank-leading if it has parts; None if it is a list of parts, or unknown.
        input_shape: the shape of this rank's input, if that is one array.
        signature: a value that is equal for all calls that agree without a closer look; None if a call needs one.
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
    """Return whether the call's metadata and ``dense`` together fully describe the arrays of a similar call."""
    if call.dtype is None or call.dtype.is_complex or call.device not in ("cpu", ACCELERATOR):
        return False
    return not (call.needs_grad or call.nan or call.factor is not None)


def recurs(call: Call) -> bool:
    """Return whether the metadata of one array, or of a list of equal arrays, identifies all calls like this one."""
    if call.content or not is_plain(call):
        return False
    if call.discovers:
        return gathers_ragged(call)
    if call.sends is None and call.expects is None:
        return call.shape is not None
    return call.is_uniform


def gathers_ragged(call: Call) -> bool:
    """Return whether the call gathers arrays of unequal shapes. This rank's own array identifies such a call."""
    return call.discovers and call.collective in (ALL_GATHER, GATHER)
