"""The fixed-size slot that ranks exchange before a checked call: its description, and its data where that is small."""

from __future__ import annotations

import json
import struct
import time
import zlib
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.call import Call, Shape, name_of
from collshim.errors import ArgumentValueError
from collshim.layout import Parts, cut, flat

INLINE = 1024
"""Bytes of data that travel in the slot itself, so that a small call is one round trip."""

_HEADER = struct.Struct("<IId")
"""Bytes of the description, bytes of the data, and the time."""

_PARTED = ("scatter", "reduce_scatter", "all_to_all")
_ROOT_GIVES = ("broadcast", "scatter")
_NO_DATA = 2**32 - 1


class Slot(NamedTuple):
    """A decoded slot: a rank's call, the bytes that it gives where they fitted, and when it came, in Unix seconds."""

    call: Call
    data: bytearray | None
    posted: float


def description_bytes(size: int) -> int:
    """Bytes kept for the description in a group of ``size``: it may name a shape per peer."""
    return 512 + 48 * size


def slot_bytes(size: int) -> int:
    """The slot's length in bytes, the same for every call of a group of ``size``."""
    return _HEADER.size + description_bytes(size) + INLINE


def encode(call: Call, inputs: Parts | None, size: int) -> Tensor:
    """The slot of this rank's call; its data goes along where it fits, nothing where it gives none."""
    slot = bytearray(slot_bytes(size))
    text = _described(call[:-1], description_bytes(size))
    data = _inline(inputs)
    _HEADER.pack_into(slot, 0, len(text), _NO_DATA if data is None else len(data), time.time())
    slot[_HEADER.size : _HEADER.size + len(text)] = text
    if data is not None:
        start = len(slot) - INLINE
        slot[start : start + len(data)] = data
    return torch.frombuffer(slot, dtype=torch.uint8)


def decode(slots: Tensor) -> list[Slot]:
    """Every rank's slot, in rank order, from the gathered bytes ``(size, slot_bytes)``."""
    size, length = slots.shape
    memory = slots.numpy().data.cast("B", (size * length,)) if slots.numel() else memoryview(b"")
    return [_decoded(memory, rank * length, length) for rank in range(size)]


def _decoded(memory: memoryview, start: int, length: int) -> Slot:
    described, count, posted = _HEADER.unpack_from(memory, start)
    text, data = start + _HEADER.size, start + length - INLINE
    call = call_from(bytes(memory[text : text + described]))
    return Slot(call, None if count == _NO_DATA else bytearray(memory[data : data + count]), posted)


def travels_in_slots(call: Call, inputs: Parts | None) -> bool:
    """Whether this rank can tell by itself that all ranks' data is in their slots, once their calls agree."""
    alike = call.op not in _ROOT_GIVES and call.sends is None and call.expects is None
    return alike and _fits(inputs)


def _fits(inputs: Parts | None) -> bool:
    if inputs is None or isinstance(inputs, Tensor):
        return inputs is None or (inputs.nbytes <= INLINE and inputs.is_cpu)
    return sum(tensor.nbytes for tensor in inputs) <= INLINE and inputs[0].is_cpu


def _inline(inputs: Parts | None) -> Any:
    """The data as a buffer of bytes, or None where it does not fit."""
    if inputs is None:
        return b""
    return as_bytes(flat(inputs)).numpy().data if _fits(inputs) else None


def as_bytes(tensor: Tensor) -> Tensor:
    """A contiguous tensor's memory as flat bytes, a view."""
    whole = tensor.as_strided((tensor.numel(),), (1,))  # one element may have any stride and count as contiguous
    return torch.view_as_real(whole).view(-1).view(torch.uint8) if whole.is_complex() else whole.view(torch.uint8)


def from_bytes(data: Tensor, dtype: torch.dtype) -> Tensor:
    """Flat bytes as a flat tensor of ``dtype``; a copy, since bytes in a slot are aligned to nothing."""
    whole = torch.empty(data.numel() // dtype.itemsize, dtype=dtype, device="cpu")
    as_bytes(whole).copy_(data)
    return whole


def given(slot: Slot, rank: int, size: int) -> Parts | None:
    """What ``rank`` gave, out of its slot: one tensor, rank-leading parts, or a list of unequal ones."""
    call = slot.call
    if slot.data is None or call.dtype is None or not _gives(call, rank):
        return None
    whole = torch.frombuffer(slot.data, dtype=call.dtype) if slot.data else torch.empty(0, dtype=call.dtype)
    if call.sends is not None:
        return cut(whole, call.sends)
    shape = call.shape or ()
    return whole.view(size, *shape) if call.op in _PARTED else whole.view(shape)


def _gives(call: Call, rank: int) -> bool:
    return call.op != "barrier" and (call.op not in _ROOT_GIVES or call.root == rank)


@lru_cache(1024)
def _described(fields: tuple[Any, ...], limit: int) -> bytes:
    """A call's fields but the sequence number, which no other rank reads; scripts repeat themselves."""
    plain = list(fields)
    plain[2] = None if plain[2] is None else name_of(plain[2])
    text = json.dumps(plain, separators=(",", ":")).encode()
    if len(text) > limit:
        text = zlib.compress(text, 9)
    if len(text) > limit:
        raise ArgumentValueError(
            f"{plain[0]}: the description of the parts takes {len(text)} bytes, should be at most {limit}: "
            "give parts with fewer dimensions"
        )
    return text


@lru_cache(1024)
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
    return _described(call[:-1], 1 << 20)


def _shape(shape: list[int] | None) -> Shape | None:
    return None if shape is None else tuple(shape)


def _shapes(shapes: list[list[int]] | None) -> tuple[Shape, ...] | None:
    return None if shapes is None else tuple(tuple(shape) for shape in shapes)
