"""The fixed-size slot that ranks exchange before a checked call: its description, and its data where that is small."""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from collshim.call import Call, Shape
from collshim.errors import ArgumentValueError
from collshim.layout import Parts, cut, flat

INLINE = 1024
"""Bytes of data that travel in the slot itself, so that a small call is one round trip."""

_LENGTHS = 8
_PARTED = ("scatter", "reduce_scatter", "all_to_all")
_ROOT_GIVES = ("broadcast", "scatter")
_NO_DATA = 2**32 - 1


class Slot(NamedTuple):
    """A decoded slot: a rank's call, and the bytes that it gives where they fitted."""

    call: Call
    data: Tensor | None


def description_bytes(size: int) -> int:
    """Bytes kept for the description in a group of ``size``: it may name a shape per peer."""
    return 512 + 48 * size


def slot_bytes(size: int) -> int:
    """The slot's length in bytes, the same for every call of a group of ``size``."""
    return _LENGTHS + description_bytes(size) + INLINE


def encode(call: Call, inputs: Parts | None, size: int) -> Tensor:
    """The slot of this rank's call; its data goes along where it fits, nothing where it gives none."""
    slot = np.zeros(slot_bytes(size), np.uint8)
    text = _described(call, description_bytes(size))
    data = _inline(inputs)
    slot[:_LENGTHS].view(np.uint32)[:] = len(text), _NO_DATA if data is None else data.size
    slot[_LENGTHS : _LENGTHS + len(text)] = np.frombuffer(text, np.uint8)
    if data is not None:
        slot[len(slot) - INLINE : len(slot) - INLINE + data.size] = data
    return torch.from_numpy(slot)


def decode(slots: Tensor) -> list[Slot]:
    """Every rank's slot, in rank order, from the gathered bytes ``(size, slot_bytes)``."""
    return [_decoded(row) for row in slots.numpy()]


def _decoded(row: np.ndarray[Any, np.dtype[np.uint8]]) -> Slot:
    length, count = (int(number) for number in row[:_LENGTHS].view(np.uint32))
    call = call_from(row[_LENGTHS : _LENGTHS + length].tobytes())
    start = len(row) - INLINE
    return Slot(call, None if count == _NO_DATA else torch.from_numpy(row[start : start + count]))


def travels_in_slots(call: Call, inputs: Parts | None) -> bool:
    """Whether this rank can tell by itself that all ranks' data is in their slots, once their calls agree."""
    alike = call.op not in _ROOT_GIVES and call.sends is None and call.expects is None
    return alike and _inline(inputs) is not None


def _inline(inputs: Parts | None) -> np.ndarray[Any, Any] | None:
    if inputs is None:
        return np.zeros(0, np.uint8)
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if sum(tensor.nbytes for tensor in tensors) > INLINE or tensors[0].device.type != "cpu":
        return None
    return as_bytes(flat(inputs)).numpy()


def as_bytes(tensor: Tensor) -> Tensor:
    """A contiguous tensor's memory as flat bytes, a view."""
    whole = tensor.as_strided((tensor.numel(),), (1,))  # one element may have any stride and count as contiguous
    return torch.view_as_real(whole).view(-1).view(torch.uint8) if whole.is_complex() else whole.view(torch.uint8)


def from_bytes(data: Tensor, dtype: torch.dtype) -> Tensor:
    """Flat bytes as a flat tensor of ``dtype``; a copy, since bytes in a slot are aligned to nothing."""
    whole = torch.empty(data.numel() // dtype.itemsize, dtype=dtype)
    as_bytes(whole).copy_(data)
    return whole


def given(slot: Slot, rank: int, size: int) -> Parts | None:
    """What ``rank`` gave, out of its slot: one tensor, rank-leading parts, or a list of unequal ones."""
    call = slot.call
    if slot.data is None or call.dtype is None or not _gives(call, rank):
        return None
    whole = from_bytes(slot.data, call.dtype)
    if call.sends is not None:
        return cut(whole, call.sends)
    shape = call.shape or ()
    return whole.view(size, *shape) if call.op in _PARTED else whole.view(shape)


def _gives(call: Call, rank: int) -> bool:
    return call.op != "barrier" and (call.op not in _ROOT_GIVES or call.root == rank)


def _described(call: Call, limit: int) -> bytes:
    plain = list(call)
    plain[2] = None if call.dtype is None else str(call.dtype).removeprefix("torch.")
    text = json.dumps(plain, separators=(",", ":")).encode()
    if len(text) > limit:
        text = zlib.compress(text, 9)
    if len(text) > limit:
        raise ArgumentValueError(
            f"{call.op}: the description of the parts takes {len(text)} bytes, should be at most {limit}: "
            "give parts with fewer dimensions"
        )
    return text


def call_from(text: bytes) -> Call:
    """The call that ``description`` described."""
    fields: list[Any] = json.loads(text if text[:1] == b"[" else zlib.decompress(text))
    op, shape, dtype, device, reduce_op, factor, root, sends, expects, *rest = fields
    return Call(
        op,
        _shape(shape),
        None if dtype is None else getattr(torch, dtype),
        device,
        reduce_op,
        factor,
        root,
        _shapes(sends),
        _shapes(expects),
        *rest,
    )


def describe(call: Call) -> bytes:
    """A call as bytes of no fixed length, for letters."""
    return _described(call, 1 << 20)


def _shape(shape: list[int] | None) -> Shape | None:
    return None if shape is None else tuple(shape)


def _shapes(shapes: list[list[int]] | None) -> tuple[Shape, ...] | None:
    return None if shapes is None else tuple(tuple(shape) for shape in shapes)
