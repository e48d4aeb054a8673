"""What comes into a collective and what goes back: any array kind in, the same kind out."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from collshim.arrays import Array, as_torch, is_array, like
from collshim.calls.validation import refuse_kind
from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError, ArgumentValueError, also, refusal
from collshim.megengine._place import placing


def input_tensor(collective: str, inp: Array, comm: Communicator) -> Tensor:
    """``inp`` as a tensor to send.

    Raises:
        AttributeError, also TypeError: no array.
        TypeError: sparse, quantized, or without memory.
        RuntimeError, also ValueError: no elements.
    """
    if not is_array(inp):
        what = f"'{type(inp).__name__}' object has no attribute 'dtype'"
        raise also(ArgumentTypeError, AttributeError)(
            f"{what}: {refusal(collective, 'inp', 'no array', 'an array', comm.rank, comm.size)}"
        )
    tensor = as_torch(inp, what=f"{collective}: inp")
    refuse_kind(comm, collective, tensor)
    if tensor.numel() == 0:
        shape = tuple(tensor.shape)
        raise also(ArgumentValueError, RuntimeError)(
            refusal(collective, "inp", f"empty (shape {shape})", "one with elements", comm.rank, comm.size)
        )
    return tensor


def result_converter(inp: Array, device: str | None) -> Callable[[Tensor], Array]:
    """What makes a result the kind of array that ``inp`` is, on ``device``; torch's where ``inp`` is no array."""
    place, kind = placing(device), like(inp) if is_array(inp) else None
    return place if kind is None else lambda result: kind(place(result))
