"""The fingerprint that ranks exchange before data moves: of fixed size, with a call's header and small data."""

from __future__ import annotations

import hmac
import json
import struct
import zlib
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.calls.call import Call, name_of
from collshim.calls.collective import COLLECTIVES, Shape
from collshim.errors import ArgumentValueError
from collshim.layout import Parts, buffer, cut, flat

INLINE_BYTES = 1024
"""The number of bytes of data that travel in the fingerprint itself, so that a small call takes one round trip."""

_PREFIX = struct.Struct("<IId")
"""The header's length in bytes, the data's length in bytes, and when the call was posted."""

_SIGNED = struct.Struct("<IQ")
"""The part of a signature's input that identifies it: the rank, and the number of its fingerprint."""

_SIGNATURE_BYTES = 16

_NO_DATA = 2**32 - 1
_LONGEST_TEXT = 1 << 21


class Fingerprint(NamedTuple):
    """A decoded fingerprint: a rank's call, its data if it fitted, and when the call was posted.

    The time is in seconds since the rank made the group, by its own host's clock.
    """

    call: Call
    data: bytearray | Tensor | None
    posted: float


@lru_cache(64)
def header_bytes(size: int) -> int:
    """Return the bytes reserved for the header in a group of ``size``: it can name a shape per peer."""
    return 512 + 48 * size


@lru_cache(64)
def fingerprint_bytes(size: int) -> int:
    """Return the fingerprint's length in bytes, the same for every call of a group of ``size``."""
    return _PREFIX.size + header_bytes(size) + INLINE_BYTES + _SIGNATURE_BYTES


def signing_key(secret: bytes, group: str) -> bytes:
    """Return the key that signs a group's fingerprints; empty if the world has no secret."""
    return hmac.digest(secret, group.encode(), "sha256") if secret else b""


def encode(
    header: bytes,
    data: bytes | None,
    size: int,
    key: bytes = b"",
    rank: int = 0,
    number: int = 0,
    posted: float = 0.0,
) -> Tensor:
    """Encode the fingerprint of this rank's call, with its ``inline_bytes``.

    ``number`` counts the group's fingerprints, so that none can be replayed; ``key`` signs the group's fingerprints;
    ``posted`` is the time of the call, in seconds since this rank made the group.
    """
    fingerprint = bytearray(fingerprint_bytes(size))
    prefix = _PREFIX.pack(len(header), _NO_DATA if data is None else len(data), posted)
    fingerprint[: _PREFIX.size + len(header)] = prefix + header
    if data:
        start = len(fingerprint) - _SIGNATURE_BYTES - INLINE_BYTES
        fingerprint[start : start + len(data)] = data
    if key:
        signed = b"".join((_SIGNED.pack(rank, number), prefix, header, data or b""))
        fingerprint[-_SIGNATURE_BYTES:] = blake2b(signed, key=key, digest_size=_SIGNATURE_BYTES).digest()
    return torch.frombuffer(fingerprint, dtype=torch.uint8)


def decode(fingerprints: Tensor, key: bytes = b"", number: int = 0, own: int = -1) -> list[Fingerprint]:
    """Decode every rank's fingerprint, in rank order, from the gathered bytes ``(size, fingerprint_bytes)``.

    ``own`` is this rank, whose own signature is not checked.

    Raises:
        ValueError: a rank's fingerprint does not belong to the group, or does not have this number.
    """
    size, length = fingerprints.shape
    memory = fingerprints.numpy().data.cast("B", (size * length,)) if fingerprints.numel() else memoryview(b"")
    keys = [b"" if rank == own else key for rank in range(size)]
    return [_decode_one(memory[rank * length : (rank + 1) * length], keys[rank], rank, number) for rank in range(size)]


def _decode_one(memory: memoryview, key: bytes, rank: int, number: int) -> Fingerprint:
    header, count, posted = _PREFIX.unpack_from(memory)
    start, end = len(memory) - _SIGNATURE_BYTES - INLINE_BYTES, _PREFIX.size + header
    text, data = bytes(memory[_PREFIX.size : end]), None if count == _NO_DATA else memory[start : start + count]
    if key:
        signed = b"".join((_SIGNED.pack(rank, number), memory[: _PREFIX.size], text, data or b""))
        signature = blake2b(signed, key=key, digest_size=_SIGNATURE_BYTES).digest()
        if not hmac.compare_digest(signature, memory[-_SIGNATURE_BYTES:]):
            raise ValueError(f"the fingerprint from rank {rank} is not signed with the world's secret")
    return Fingerprint(call_from(text), None if data is None else bytearray(data), posted)


def inline_bytes(inputs: Parts | None) -> bytes | None:
    """Return the bytes of a rank's input, empty if it has none; None if they do not fit in its fingerprint."""
    if inputs is None:
        return b""
    if isinstance(inputs, Tensor):
        if inputs.nbytes > INLINE_BYTES or not inputs.is_cpu:
            return None
        return buffer(inputs).tobytes() if inputs.nbytes else b""
    if sum(tensor.nbytes for tensor in inputs) > INLINE_BYTES or not inputs[0].is_cpu:
        return None
    return inline_bytes(flat(inputs))


def inline_tensor(inputs: Parts | None, room: int) -> tuple[bool, Parts | None]:
    """Return whether a rank's input fits in ``room`` bytes of the CPU's memory, and the input as the core takes it.

    The core takes one tensor, or a list of tensors of equal length.
    """
    if inputs is None:
        return True, None
    if isinstance(inputs, Tensor):
        return inputs.nbytes <= room and inputs.is_cpu, inputs
    lengths = [tensor.nbytes for tensor in inputs]
    fits = sum(lengths) <= room and inputs[0].is_cpu
    is_even = lengths.count(lengths[0]) == len(lengths)
    return fits, (inputs if is_even else flat(inputs)) if fits else None


class Form(NamedTuple):
    """The form in which to read a rank's input from its bytes: as one tensor of ``shape``, or cut into ``parts``."""

    dtype: torch.dtype
    shape: Shape
    parts: tuple[Shape, ...] | None


def form_of(call: Call, rank: int, size: int) -> Form | None:
    """Return the form of the input of ``rank``, whose call this is; None if it has no input."""
    if call.dtype is None or not call.collective.gives_on(rank, call.root):
        return None
    return Form(call.dtype, call.collective.input_shape(call.shape or (), size), call.sends)


def read(data: bytearray | Tensor, form: Form | None) -> Parts | None:
    """Return a rank's input: one tensor, rank-leading parts, or a list of unequal ones."""
    if form is None:
        return None
    if isinstance(data, Tensor):
        whole = data.view(form.dtype)
    else:
        whole = torch.frombuffer(data, dtype=form.dtype) if data else torch.empty(0, dtype=form.dtype)
    return whole.view(form.shape) if form.parts is None else cut(whole, form.parts)


@lru_cache(1024)
def header_of(call: Call, limit: int = 1 << 20) -> bytes:
    """Encode a call's fields in at most ``limit`` bytes."""
    fields: list[Any] = list(call)
    fields[0] = call.op
    fields[2] = None if call.dtype is None else name_of(call.dtype)
    text = json.dumps(fields, separators=(",", ":")).encode()
    if len(text) > limit:
        text = zlib.compress(text, 9)
    if len(text) > limit:
        raise ArgumentValueError(
            f"{call.op}: the description of the parts takes {len(text)} bytes, should be at most {limit}: "
            "pass parts with fewer dimensions"
        )
    return text


@lru_cache(1024)
def call_from(header: bytes) -> Call:
    """Decode a call from its header.

    Raises:
        ValueError: it does not describe a call.
    """
    try:
        fields: list[Any] = json.loads(header if header[:1] == b"[" else _decompress(header))
        op, shape, dtype, device, reduce_op, factor, root, sends, expects, *rest = fields
        shape = None if shape is None else _shape(shape)
        dtype = None if dtype is None else getattr(torch, dtype)
        shapes = _shapes(sends), _shapes(expects)
        call = Call(COLLECTIVES[op], shape, dtype, device, reduce_op, factor, root, *shapes, *rest)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise ValueError(f"{len(header)} bytes that describe no call: {error}") from error
    is_call = _is(dtype, torch.dtype, None) and _is(reduce_op, str, None)
    if not (is_call and _is(factor, int, float, None) and _is(root, int, None)):
        raise ValueError(f"{len(header)} bytes that describe no call")
    return call


def _decompress(header: bytes) -> bytes:
    """Decompress a header, up to the longest valid length: a few bytes can expand to very many."""
    packed = zlib.decompressobj()
    text = packed.decompress(header, _LONGEST_TEXT)
    if packed.unconsumed_tail:
        raise ValueError(f"a description of more than {_LONGEST_TEXT} bytes")
    return text


def _is(value: Any, *kinds: type | None) -> bool:
    return any(value is None if kind is None else isinstance(value, kind) for kind in kinds)


def _shape(shape: list[int]) -> Shape:
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"a shape of {shape}")
    return tuple(shape)


def _shapes(shapes: list[list[int]] | None) -> tuple[Shape, ...] | None:
    return None if shapes is None else tuple(_shape(shape) for shape in shapes)
