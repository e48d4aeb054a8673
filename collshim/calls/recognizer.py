"""``Recognizer``: check whether the arrays of a call fit an earlier plan.

A plan holds what follows from the metadata of a call's arrays. The properties of the arrays themselves (whether they
are contiguous, their addresses, whether they require a gradient) are checked in every call by ``dense`` and ``places``.

The recognizer remembers only facts that stay true for different arrays: guards, which have metadata but no tensor, and
the addresses of a list. Before the addresses are used, they are compared with the addresses of the current tensors, so
it does no harm if the memory was freed meanwhile: whether memory at equal addresses and of equal sizes overlaps does
not depend on the tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays import Array, Arrays, writable_view
from collshim.arrays.dtypes import NUMPY_DTYPES
from collshim.calls.aliasing import are_apart, without_overlap
from collshim.calls.collective import Shape
from collshim.calls.likeness import Likeness, likeness_of
from collshim.calls.plan import Plan
from collshim.layout import Parts

_FORMS = 2
"""The number of forms of an output for parts: stacked, or end to end."""

_STRIDED = torch.strided
_ADDRESS = Tensor.data_ptr
_IS_NESTED: Any = vars(torch._C.TensorBase)["is_nested"].__get__


class Recognizer:
    """Recognizes the calls that a plan fits, by their arrays.

    Attributes:
        plan: the plan.
        in_place: whether a result may be written over the input.
        needs_out: whether the result has the form of the caller's ``out``.
        shape: the shape of an ``out`` that is one array; None if ``out`` cannot be one.
        joined: the shape of an ``out`` whose parts lie end to end along axis 0; None if it cannot.
        has_parts: whether the transport may take an input or an output with a part for each rank in a different shape.
        takes_joined: whether the transport accepts parts that lie end to end without a reshape.
        apart: the addresses of the last tensors in a list that share no memory; all calls of a plan have as many bytes.
        given_as: guard for the input of a call without ``out``, or in place, that the transport read directly.
        placed_as: guards for an input and an ``out`` that the transport used directly, one per form of ``out``.
            ``nbytes``: the number of bytes of each of the two.
        tries: the number of attempts to let the core repeat such calls as a whole.
        listed_as: guard for the tensors of an input and an ``out``, some in a list, that the transport used directly.
            ``listed``: for each of the two, whether it is a list, and the number of its tensors.
    """

    __slots__ = (
        "apart", "given_as", "has_parts", "in_place", "joined", "listed", "listed_as", "nbytes", "needs_out",
        "placed_as", "plan", "shape", "takes_joined", "tries",
    )  # fmt: skip

    def __init__(self, plan: Plan, *, shape: Shape | None = None, takes_joined: bool = False) -> None:
        """Make a recognizer; ``shape`` is for an ``out`` whose unequal parts lie end to end."""
        call, collective = plan.call, plan.collective
        self.plan = plan
        self.in_place = collective.gives == collective.gets == "tensor" and plan.gets
        self.needs_out = call.sends is not None
        self.shape = plan.shape if shape is None else shape
        has_joined = plan.shape is not None and collective.gets == "parts"
        self.joined = (plan.size * plan.part[0], *plan.part[1:]) if has_joined and plan.part else None
        self.has_parts = plan.gives_parts or (self.joined is not None and not takes_joined)
        self.takes_joined = takes_joined
        self.apart: list[int] = []
        self.given_as: Likeness | None = None
        self.placed_as: tuple[Likeness, ...] = ()
        self.nbytes = (0, 0)
        self.listed_as: Likeness | None = None
        self.listed = (False, 0, False, 0)
        self.tries = 0

    def recalls(self, array: Tensor, out: Tensor | None) -> bool:
        """Return whether these resemble tensors of an earlier call that were used directly, and share no memory."""
        if array.is_nested:  # a likeness reads the strides, which for a nested tensor would end the process
            return False
        if out is None or out is array:
            alike = self.given_as
            if alike is None or not alike(array) or not array.data_ptr():  # 0: empty, or freed
                return False
            return not self.needs_out if out is None else self.in_place or not self.plan.gives
        if out.is_nested:
            return False
        for alike in self.placed_as:
            if alike(array, out):
                read, written = array.data_ptr(), out.data_ptr()
                if written < read:
                    return written + self.nbytes[1] <= read and written != 0
                return read + self.nbytes[0] <= written and read != 0
        return False

    def recalls_listed(self, array: Arrays, out: Arrays) -> bool:
        """Do the same as ``recalls`` for an input and an ``out`` of which at least one is a list; else return False."""
        alike = self.listed_as
        if alike is None:
            return False
        given, gets = type(array) is list, type(out) is list
        read, written = array if given else [array], out if gets else [out]
        if self.listed != (given, len(read), gets, len(written)):
            return False
        tensors = read + written
        if list(map(type, tensors)).count(Tensor) < len(tensors) or any(map(_IS_NESTED, tensors)):
            return False
        return alike(*tensors) and all(map(_ADDRESS, tensors)) and self.keeps_apart(read, written)

    def remember(self, array: Arrays, out: Arrays, inputs: Arrays, outputs: Arrays) -> None:
        """Remember these tensors to recognize similar calls, unless the transport uses different ones instead."""
        if type(array) is list or type(out) is list:
            if inputs is array and outputs is out and self.listed_as is None:
                self._remember_listed(array, out)
        elif type(array) is not Tensor or not (inputs is None or inputs is array or self._is_view(inputs, array)):
            return
        elif out is None or out is array:
            self.given_as = self.given_as or likeness_of(array)
        elif type(out) is Tensor and len(self.placed_as) < _FORMS:
            alike = None if any(known(array, out) for known in self.placed_as) else likeness_of(array, out)
            if alike is not None:
                self.placed_as, self.nbytes = (*self.placed_as, alike), (array.nbytes, out.nbytes)

    def _is_view(self, inputs: Tensor, array: Tensor) -> bool:
        """Return whether ``parts`` returns these inputs for this array."""
        is_joined = self.plan.gives_parts and inputs.shape != array.shape and not array.requires_grad
        return is_joined and inputs.data_ptr() == array.data_ptr()

    def _remember_listed(self, array: Arrays, out: Arrays) -> None:
        given, gets = type(array) is list, type(out) is list
        read, written = array if given else [array], out if gets else [out]
        if all(type(each) is Tensor for each in read + written):
            self.listed_as, self.listed = likeness_of(*read, *written), (given, len(read), gets, len(written))

    def parts(self, inputs: Arrays, out: Arrays) -> Arrays | None:
        """Return the input as the transport takes it; None if its parts lie end to end and ``out`` is not an array."""
        if type(inputs) is not Tensor or inputs.shape == self.plan.input_shape:
            return inputs
        if out is None or type(out) is list:
            return None
        return inputs if self.takes_joined else inputs.view(self.plan.input_shape or ())

    def as_planned(self, array: Arrays, out: Arrays) -> tuple[Arrays, Arrays]:
        """Return the input and output of a recalled call as the transport takes them."""
        plan, outputs = self.plan, out if self.plan.gets else None
        if not self.takes_joined and type(outputs) is Tensor and outputs.shape == self.joined:
            outputs = outputs.view(self.shape or ())
        if not plan.gives:
            return None, outputs
        is_split = type(array) is not Tensor or array.shape == plan.input_shape  # true for most calls, and saves a call
        return (self.parts(array, out) if plan.gives_parts and not is_split else array), outputs

    def places(self, inputs: Arrays, out: Arrays) -> tuple[Arrays, Parts] | None:
        """Return the memory to read and to write if ``out`` fits the plan; None if ``out`` must be validated.

        ``inputs`` is this rank's input as returned by ``dense``; it is ignored if this rank has no input.
        """
        if type(out) is list:
            return self._listed_places(inputs, _dense_list(out)) if out else None
        plan = self.plan
        outputs = dense(out)
        if outputs is None or outputs.dtype is not plan.call.dtype or outputs.is_cpu is not plan.on_cpu:
            return None
        if not plan.on_cpu and outputs.device != plan.device:
            return None
        if outputs.shape != self.shape:
            if outputs.shape != self.joined:
                return None
            outputs = outputs if self.takes_joined else outputs.view(self.shape or ())
        if not plan.gives:
            return None, outputs
        if type(inputs) is Tensor:
            read, written = inputs.data_ptr(), outputs.data_ptr()
            if written + outputs.nbytes <= read or read + inputs.nbytes <= written:
                return inputs, outputs
        elif are_apart(inputs, [outputs]):
            return inputs, outputs
        return without_overlap(plan.collective, plan.rank, inputs, outputs), outputs

    def _listed_places(self, inputs: Arrays, outputs: list[Tensor] | None) -> tuple[Arrays, Parts] | None:
        if outputs is None:
            return None
        first, plan = outputs[0], self.plan
        if first.dtype is not plan.call.dtype or first.shape != plan.part or len(outputs) != plan.size:
            return None
        if first.is_cpu is not plan.on_cpu or plan.collective.gets != "parts":
            return None
        if not plan.on_cpu and first.device != plan.device:
            return None
        inputs = inputs if plan.gives else []
        if self.keeps_apart(inputs if type(inputs) is list else [inputs], outputs):
            return inputs, outputs
        if not are_apart([], outputs):
            return None
        return without_overlap(plan.collective, plan.rank, inputs, outputs), outputs

    def keeps_apart(self, read: list[Tensor], written: list[Tensor]) -> bool:
        """Do the same as ``are_apart``, and remember the last tensors that were apart."""
        addresses = list(map(_ADDRESS, read + written))
        if addresses != self.apart:
            if not are_apart(read, written):
                return False
            self.apart = addresses
        return True


def dense(array: Arrays) -> Arrays:
    """Return the array as a contiguous tensor that belongs to no graph; None if it needs full validation.

    The device is not checked here: plans are looked up by device too.

    For a list of arrays of one kind, device, dtype and shape, return a list of such tensors.
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
        except RuntimeError:  # a tensor inside one of torch.func's transforms
            return None
        if not array.requires_grad:
            return array
        return None if torch.is_grad_enabled() else array.detach()
    if kind is list:
        return _dense_list(array) if array else None
    return None if array is None else _dense_array(array)


def _dense_array(array: Array) -> Tensor | None:
    """Do the same as ``dense`` for an array of a different library; also return None if it must not be written."""
    if type(array) is np.ndarray:
        flags = array.flags
        if not flags.c_contiguous or not flags.writeable or array.dtype not in NUMPY_DTYPES:
            return None
        try:
            return torch.from_numpy(array)
        except ValueError:  # NumPy calls a single element contiguous whatever its strides are
            return None
    view = writable_view(array)
    return None if view is None else dense(view)


def _dense_list(arrays: list[Array]) -> list[Tensor] | None:
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


def _dense_arrays(arrays: list[Array]) -> list[Tensor] | None:
    kind = type(arrays[0])
    if kind is list:
        return None
    tensors = [dense(array) for array in arrays if type(array) is kind]
    return None if len(tensors) != len(arrays) or None in tensors else tensors


def _on_one_gpu(tensors: list[Tensor]) -> bool:
    return tensors[0].device.type == ACCELERATOR and all(tensor.device == tensors[0].device for tensor in tensors)
