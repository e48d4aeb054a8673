"""``Plan``: a validated call, remembered, so that a call like it is neither validated nor prepared again.

A plan holds what follows from the metadata of a call's arrays. What belongs to the arrays themselves (whether they are
contiguous, where they lie, whether they need a gradient) is looked at in every call, by ``dense`` and ``Plan.places``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.calls.agreement import signature
from collshim.calls.aliasing import are_apart, without_overlap
from collshim.calls.call import Call
from collshim.calls.collective import MESSAGES
from collshim.calls.likeness import Likeness, likeness_of
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.work import Work

_FORMS = 2
"""Of a place for parts: stacked, or end to end."""

KEPT = 1024
"""Plans that a communicator keeps."""

_STRIDED = torch.strided
_ADDRESS = Tensor.data_ptr
_NUMPY_DTYPES = {np.dtype(name) for name in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?")}


Start = Callable[["Plan", "Parts | None", "Parts | None", "Caller | None"], Work[Any]]
"""See ``Transport.start``."""

InLine = Callable[["Parts | None", "Parts | None", "Caller | None", "float | None"], Work[Any]]
"""Starts a call with its inputs and outputs, where it was called, and its deadline; a complete or a failed work."""


class Plan:
    """What a validated call needs to be started again on this rank.

    Attributes:
        call: the call, without the line it was made at.
        collective: its record; ``reduces``: whether it does.
        is_message: whether it is a send or a recv.
        device: where this rank's arrays are; ``on_cpu``: whether that is the CPU.
        rank, size: this rank in its group, and the group's size.
        gives, gives_parts, gets: whether this rank gives data, one part per rank, and whether it gets a result.
        in_place: whether a result may lie where the input does.
        needs_out: whether the form of the result is that of the place that the caller gives for it.
        part: the shape of this rank's tensor, or of each of its parts; None where they are unequal, or unknown.
        shape: the result's, rank-leading where it has parts; None where it comes part by part, or is unknown.
        joined: the shape of a result that has parts where they lie end to end along axis 0; None where it has none.
        takes_joined, takes_lists: whether the transport takes parts that lie end to end, or tensors in a list, as such.
        apart: where the tensors of the last list lay that share no memory; all calls of a plan have as many bytes.
        input_shape: what a rank gives, where it is one array.
        signature: what calls that agree without a closer look have in common; None for a call that needs one.
        given_as: whether a tensor is like one that was taken as it is, without a place for the result, or in its own.
        placed_as: of each form that places had, whether two tensors are like an input and a place that were taken as
            they are. ``nbytes``: how many bytes those two have.
        prepared: what the transport keeps with the plan.
        start: what starts such a call, where the transport has something quicker than for any; else None.
        in_line: what starts such a call where its caller waits at once, on a GPU, whose stream it takes its place in;
            None where there is no such thing, or the ranks compare the call.
        headers: the encoded call by the line it is made at, kept by a transport that sends it.
    """

    __slots__ = (
        "apart", "call", "collective", "device", "gets", "given_as", "gives", "gives_parts", "headers",
        "in_line", "in_place", "input_shape", "is_message", "joined", "nbytes", "needs_out", "on_cpu", "part",
        "placed_as", "prepared", "rank", "reduces", "shape", "signature", "size", "start", "takes_joined",
        "takes_lists",
    )  # fmt: skip

    prepared: Any
    start: Start | None
    in_line: InLine | None

    def __init__(self, call: Call, device: torch.device, rank: int, size: int) -> None:
        collective = call.collective
        self.call = call
        self.collective = collective
        self.reduces = collective.reduces
        self.is_message = collective in MESSAGES
        self.device = device
        self.on_cpu = device.type == "cpu"
        self.rank = rank
        self.size = size
        self.gives = collective.gives_on(rank, call.root)
        self.gives_parts = self.gives and collective.gives == "parts"
        self.gets = collective.gets_on(rank, call.root)
        self.in_place = collective.gives == collective.gets == "tensor" and self.gets
        self.needs_out = call.sends is not None
        self.part = call.sends[0] if call.sends and call.is_uniform else call.shape
        is_known = not (call.shape is None or call.is_ragged or call.discovers)
        self.shape = collective.result_shape(call.shape or (), size) if is_known else None
        has_joined = self.shape is not None and collective.gets == "parts"
        self.joined = (size * self.part[0], *self.part[1:]) if has_joined and self.part else None
        self.takes_joined = self.takes_lists = False
        self.apart: list[int] = []
        self.input_shape = (size, *(self.part or ())) if self.gives_parts else self.part
        common = None if call.nan or call.discovers else signature(call)
        self.signature = None if common is None else (*common, call.needs_grad)
        self.given_as: Likeness | None = None
        self.placed_as: tuple[Likeness, ...] = ()
        self.nbytes = (0, 0)
        self.prepared, self.start, self.in_line = None, None, None
        self.headers: dict[tuple[int, int], tuple[Caller | None, bytes]] = {}

    def recalls(self, array: Tensor, out: Tensor | None) -> bool:
        """Whether these are like the tensors of an earlier call, which were taken as they are, and share no memory."""
        if array.is_nested or (out is not None and out.is_nested):
            return False  # asked for its strides, as a likeness does, it would end the process
        if out is None or out is array:
            alike = self.given_as
            if alike is None or not alike(array) or not array.data_ptr():  # of which is empty, or was freed
                return False
            return not self.needs_out if out is None else self.in_place or not self.gives
        for alike in self.placed_as:
            if alike(array, out):
                read, written = array.data_ptr(), out.data_ptr()
                if written < read:
                    return written + self.nbytes[1] <= read and written != 0
                return read + self.nbytes[0] <= written and read != 0
        return False

    def remember(self, array: Tensor, out: Any, inputs: Any) -> None:
        """Tell calls like this one by their tensors; not where what is read, ``inputs``, is another one."""
        if inputs is not None and inputs is not array:
            return
        if out is None or out is array:
            self.given_as = self.given_as or likeness_of(array)
        elif type(out) is Tensor and len(self.placed_as) < _FORMS:
            alike = None if any(known(array, out) for known in self.placed_as) else likeness_of(array, out)
            if alike is not None:
                self.placed_as, self.nbytes = (*self.placed_as, alike), (array.nbytes, out.nbytes)

    def parts(self, inputs: Any, out: Any) -> Any:
        """What is given, as the transport takes it; None where parts lie end to end and ``out`` is no array."""
        if type(inputs) is not Tensor or inputs.shape == self.input_shape:
            return inputs
        if out is None or type(out) is list:
            return None
        return inputs if self.takes_joined else inputs.view(self.input_shape or ())

    def places(self, inputs: Any, out: Any) -> tuple[Any, Parts] | None:
        """What is read, and what is written where ``out`` fits the plan; None where ``out`` has to be validated.

        ``inputs`` is what this rank gives as ``dense`` has it, or anything where it gives nothing.
        """
        if type(out) is list:
            return self._listed_places(inputs, _dense_list(out)) if out else None
        outputs = dense(out)
        if outputs is None or outputs.dtype is not self.call.dtype or outputs.is_cpu is not self.on_cpu:
            return None
        if not self.on_cpu and outputs.device != self.device:
            return None
        if outputs.shape != self.shape:
            if outputs.shape != self.joined:
                return None
            outputs = outputs if self.takes_joined else outputs.view(self.shape or ())
        if not self.gives:
            return None, outputs
        if type(inputs) is Tensor:
            read, written = inputs.data_ptr(), outputs.data_ptr()
            if written + outputs.nbytes <= read or read + inputs.nbytes <= written:
                return inputs, outputs
        elif are_apart(inputs, [outputs]):
            return inputs, outputs
        return without_overlap(self.collective, self.rank, inputs, outputs), outputs

    def _listed_places(self, inputs: Any, outputs: list[Tensor] | None) -> tuple[Any, Parts] | None:
        if outputs is None:
            return None
        first = outputs[0]
        if first.dtype is not self.call.dtype or first.shape != self.part or len(outputs) != self.size:
            return None
        if first.is_cpu is not self.on_cpu or self.collective.gets != "parts":
            return None
        if not self.on_cpu and first.device != self.device:
            return None
        inputs = inputs if self.gives else []
        if self.keeps_apart(inputs if type(inputs) is list else [inputs], outputs):
            return inputs, outputs
        if not are_apart([], outputs):
            return None
        return without_overlap(self.collective, self.rank, inputs, outputs), outputs

    def keeps_apart(self, read: list[Tensor], written: list[Tensor]) -> bool:
        """``are_apart``, remembered of the last tensors."""
        addresses = list(map(_ADDRESS, read + written))
        if addresses != self.apart:
            if not are_apart(read, written):
                return False
            self.apart = addresses
        return True


def is_plain(call: Call) -> bool:
    """Whether ``dense`` sees all of another such call's arrays that its metadata do not say."""
    if call.dtype is None or call.dtype.is_complex or call.device not in ("cpu", ACCELERATOR):
        return False
    return not (call.needs_grad or call.discovers or call.nan or call.factor is not None)


def recurs(call: Call) -> bool:
    """Whether the metadata of one array, or of a list of equal ones, tell all calls like this one."""
    return is_plain(call) and not call.content and (call.is_uniform or not (call.shape is None or call.is_ragged))


def dense(array: Any) -> Any:
    """The array as a contiguous tensor that is no part of a graph; else None: look at it more.

    On which device it lies is not looked at here: plans are found by that too.

    Of a list of arrays, of one kind, device, dtype and shape, a list of such tensors.
    """
    kind = type(array)
    if kind is Tensor:
        if array.layout is not _STRIDED or not array.is_contiguous():
            return None
        if array.is_neg() or array.is_nested or array.is_inference():
            return None
        try:
            if not array.data_ptr() and array.numel():
                return None
        except RuntimeError:  # a tensor within one of torch.func's transforms
            return None
        if not array.requires_grad:
            return array
        return None if torch.is_grad_enabled() else array.detach()
    if kind is np.ndarray:
        flags = array.flags
        if not flags.c_contiguous or not flags.writeable or array.dtype not in _NUMPY_DTYPES:
            return None
        try:
            return torch.from_numpy(array)
        except ValueError:  # a single element counts as contiguous, whatever its strides are
            return None
    return _dense_list(array) if kind is list and array else None


def _dense_list(arrays: list[Any]) -> list[Tensor] | None:
    tensors = arrays if type(arrays[0]) is Tensor else _dense_arrays(arrays)
    if tensors is None or tensors[0].is_nested:
        return None
    dtype, shape, on_cpu = tensors[0].dtype, tensors[0].shape, tensors[0].is_cpu
    for tensor in tensors:
        if type(tensor) is not Tensor or tensor.is_nested or tensor.dtype is not dtype or tensor.shape != shape:
            return None
        if tensor.is_cpu is not on_cpu or tensor.layout is not _STRIDED or not tensor.is_contiguous():
            return None
        if tensor.is_neg() or tensor.is_inference() or tensor.requires_grad:
            return None
    try:
        has_memory = all(map(_ADDRESS, tensors)) or not tensors[0].numel()
    except RuntimeError:  # as above
        return None
    return tensors if has_memory and (on_cpu or _on_one_gpu(tensors)) else None


def _dense_arrays(arrays: list[Any]) -> list[Tensor] | None:
    kind = type(arrays[0])
    if kind is list:
        return None
    tensors = [dense(array) for array in arrays if type(array) is kind]
    return None if len(tensors) != len(arrays) or None in tensors else tensors


def _on_one_gpu(tensors: list[Tensor]) -> bool:
    return tensors[0].device.type == ACCELERATOR and all(tensor.device == tensors[0].device for tensor in tensors)
