"""Inputs and results of collectives: inputs may be arrays of any kind, and results are of the input's kind."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from collshim.arrays import Array, as_torch, is_array, like
from collshim.calls.validation import refuse_kind
from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError, ArgumentValueError, also, refusal
from collshim.megengine._native import is_native
from collshim.megengine._place import placing
from collshim.megengine._recording import records
from collshim.megengine.core.tensor.values import Valued
from collshim.megengine.tensor import wrapped


def input_tensor(collective: str, inp: Array, comm: Communicator) -> Tensor:
    """Return ``inp`` as a tensor to send; a MegEngine tensor has a graph only while a manager records.

    Raises:
        AttributeError, also TypeError: ``inp`` is not an array.
        TypeError: ``inp`` is sparse or quantized, or has no memory.
        RuntimeError, also ValueError: ``inp`` has no elements.
    """
    if isinstance(inp, Valued):
        tensor = inp._value if records() else inp._value.detach()
    elif is_array(inp):
        tensor = as_torch(inp, what=f"{collective}: inp")
        refuse_kind(comm, collective, tensor)
    else:
        what = f"'{type(inp).__name__}' object has no attribute 'dtype'"
        raise also(ArgumentTypeError, AttributeError)(
            f"{what}: {refusal(collective, 'inp', 'no array', 'an array', comm.rank, comm.size)}"
        )
    if tensor.numel() == 0:
        shape = tuple(tensor.shape)
        raise also(ArgumentValueError, RuntimeError)(
            refusal(collective, "inp", f"empty (shape {shape})", "one with elements", comm.rank, comm.size)
        )
    return tensor


def result_converter(inp: Array, device: str | None) -> Callable[[Tensor], Array]:
    """Return a function that converts results to ``inp``'s kind on ``device``; if it is no array, see ``_native``."""
    place, is_given = placing(device), is_array(inp)
    if isinstance(inp, Valued) or (not is_given and is_native()):
        own = device or (inp._device if isinstance(inp, Valued) else None)
        return lambda result: wrapped(place(result), own)
    kind = like(inp) if is_given else None
    return place if kind is None else lambda result: kind(place(result))
