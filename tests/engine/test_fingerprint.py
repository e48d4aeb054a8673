"""The fingerprint of a call holds its header and, if small, its data."""

from __future__ import annotations

import json
import re
import tracemalloc
import zlib
from typing import Any

import pytest
import torch
from torch import Tensor

from collshim import ArgumentValueError, PeerError
from collshim.calls.call import Call
from collshim.calls.collective import COLLECTIVES
from collshim.layout import listed
from collshim.transports.processes.fingerprint import (
    INLINE_BYTES,
    Fingerprint,
    call_from,
    decode,
    encode,
    fingerprint_bytes,
    form_of,
    header_bytes,
    header_of,
    inline_bytes,
    read,
)
from tests.engine.test_communicator_dtypes import DTYPES
from tests.engine.worlds import on_ranks, world

SIZE = 3
SHAPES = ((1, 2), (), (0, 4))

CALLS = {
    "nothing but an operation": Call(COLLECTIVES["barrier"]),
    "everything": Call(
        COLLECTIVES["all_to_all"],
        (2, 3),
        torch.bfloat16,
        "cuda",
        "premul_sum",
        0.1,
        2,
        SHAPES,
        SHAPES[::-1],
        needs_grad=True,
        discovers=True,
        tag=2**40,
        site="ein längerer name.py:17",
    ),
    "no shapes are known": Call(COLLECTIVES["all_gather"], (), torch.bool, expects=()),
    "odd factors": Call(COLLECTIVES["all_reduce"], (1,), torch.float64, reduce_op="premul_sum", factor=float("-inf")),
}


def encoded(call: Call, inputs: Any, size: int = SIZE) -> Tensor:
    return encode(header_of(call, header_bytes(size)), inline_bytes(inputs), size)


def exchanged(call: Call, inputs: Any, size: int = SIZE) -> Fingerprint:
    """Return the contents of this rank's fingerprint for the others."""
    gathered = torch.stack([encoded(call, inputs, size)] * size)
    return decode(gathered)[size - 1]


def read_back(fingerprint: Fingerprint, rank: int, size: int) -> Any:
    """Read the input of ``rank`` from its fingerprint."""
    data = fingerprint.data
    return None if data is None else read(data, form_of(fingerprint.call, rank, size))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_call_round_trips(call: Call) -> None:
    assert exchanged(call, None).call == call
    assert call_from(header_of(call)) == call


@pytest.mark.parametrize("size", [1, 2, 3, 8, 64])
def test_calls_of_a_group_have_equal_length(size: int) -> None:
    lengths = {len(encoded(call, inputs, size)) for call in CALLS.values() for inputs in (None, torch.ones(3))}
    assert lengths == {fingerprint_bytes(size)}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 2), (), (0, 3)])
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_small_data_is_included(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape).to(dtype)
    found = read_back(exchanged(Call(COLLECTIVES["all_gather"], shape, dtype), tensor), 0, SIZE)
    assert isinstance(found, Tensor)
    assert (found.dtype, found.shape) == (dtype, tensor.shape)
    assert found.to(torch.complex64).tolist() == tensor.to(torch.complex64).tolist()


@pytest.mark.parametrize("elements", [INLINE_BYTES // 8, INLINE_BYTES // 8 + 1])
def test_data_is_included_up_to_its_limit(elements: int) -> None:
    tensor = torch.arange(elements, dtype=torch.float64)
    found = read_back(exchanged(Call(COLLECTIVES["all_gather"], (elements,), torch.float64), tensor), 0, SIZE)
    assert (found is not None) == (elements * 8 <= INLINE_BYTES)
    assert found is None or torch.equal(listed(found)[-1], tensor[-1])


def test_stacked_and_listed_parts_are_included() -> None:
    stacked = torch.arange(6.0).view(3, 2)
    found = read_back(exchanged(Call(COLLECTIVES["reduce_scatter"], (2,), torch.float32), stacked), 0, SIZE)
    assert isinstance(found, Tensor)
    assert torch.equal(found, stacked)
    parts = [torch.ones(shape) * rank for rank, shape in enumerate(SHAPES)]
    found = read_back(exchanged(Call(COLLECTIVES["all_to_all"], None, torch.float32, sends=SHAPES), parts), 0, SIZE)
    assert isinstance(found, list)
    assert all(torch.equal(one, other) for one, other in zip(found, parts, strict=True))


@pytest.mark.parametrize("op", ["broadcast", "scatter"])
def test_non_root_data_is_empty(op: str) -> None:
    fingerprint = exchanged(Call(COLLECTIVES[op], (2,), torch.float32, root=1), None)
    assert read_back(fingerprint, 0, SIZE) is None
    assert fingerprint.data is not None  # nothing to wait for either


def test_long_description_is_packed() -> None:
    shapes = tuple((1,) * 60 for _ in range(SIZE))
    call = Call(COLLECTIVES["all_to_all"], None, torch.float32, sends=shapes, expects=shapes)
    assert exchanged(call, None).call == call


def test_unpackable_description_is_refused() -> None:
    source = torch.Generator().manual_seed(1)
    shapes = tuple(tuple(torch.randint(10**9, (60,), generator=source).tolist()) for _ in range(SIZE))
    with pytest.raises(ArgumentValueError, match=r"all_to_all: the description .* takes \d+ bytes, should be at most"):
        encoded(Call(COLLECTIVES["all_to_all"], None, torch.float32, sends=shapes), None, SIZE)


HEADER: list[Any] = json.loads(header_of(Call(COLLECTIVES["all_reduce"], (2,), torch.float32, reduce_op="sum")))


def changed(place: int, value: Any) -> bytes:
    """Return a header with another value in one place."""
    return json.dumps([*HEADER[:place], value, *HEADER[place + 1 :]]).encode()


GARBAGE = {
    "nothing": b"",
    "any bytes": bytes(range(256)),
    "half of a header": json.dumps(HEADER).encode()[:30],
    "half of a packed one": zlib.compress(json.dumps(HEADER).encode())[:-20],
    "no text": b"[\xff\xfe]",
    "too few fields": b"[1, 2]",
    "too many fields": json.dumps(HEADER * 2).encode(),
    "very deep": b"[" * 100_000,
    "a very long number": b"[" + b"9" * 100_000 + b"]",
    "a collective that there is not": changed(0, "explode"),
    "a list for a collective": changed(0, ["all_reduce"]),
    "a number for a shape": changed(1, 3),
    "text in a shape": changed(1, ["a"]),
    "a negative length": changed(1, [-1]),
    "a function for a dtype": changed(2, "load"),
    "a module for a dtype": changed(2, "nn"),
    "a dtype that there is not": changed(2, "float31"),
    "a number for a dtype": changed(2, 3),
    "a list for a reduction": changed(4, []),
    "text for a factor": changed(5, "2"),
    "text for a root": changed(6, "x"),
    "numbers for parts": changed(7, [3]),
    "much packed into little": zlib.compress(b"[" * (1 << 28), 9),
    "a long list packed into little": zlib.compress(b"[" + b"0," * (1 << 26) + b"0]", 9),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_invalid_bytes_are_a_value_error(name: str) -> None:
    header = GARBAGE[name]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=rf"{len(header)} bytes that describe no call"):
            call_from(header)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


def signed(number: int, key: bytes = b"k" * 32) -> Tensor:
    header = header_of(CALLS["no shapes are known"], header_bytes(SIZE))
    return torch.stack([encode(header, inline_bytes(torch.ones(3)), SIZE, key, rank, number) for rank in range(SIZE)])


def test_signed_fingerprint_is_read_with_the_key() -> None:
    assert len(decode(signed(4), b"k" * 32, 4)) == SIZE


@pytest.mark.parametrize(
    ("forged", "number"),
    [(signed(4, b""), 4), (signed(4, b"l" * 32), 4), (signed(4), 5), (signed(4)[[0, 2, 1, *range(3, SIZE)]], 4)],
    ids=["without a signature", "of another key", "sent again", "of another rank"],
)
def test_fingerprint_signed_for_another_place_is_refused(forged: Tensor, number: int) -> None:
    with pytest.raises(ValueError, match=r"the fingerprint from rank \d is not signed with the world's secret"):
        decode(forged, b"k" * 32, number)


@pytest.mark.parametrize("place", [0, 4, 20, -17])
def test_modified_fingerprint_is_refused(place: int) -> None:
    fingerprints = signed(4)
    start = fingerprint_bytes(SIZE) - 16 - INLINE_BYTES
    fingerprints[1, place if place >= 0 else start] += 1
    with pytest.raises(ValueError, match="rank 1 is not signed"):
        decode(fingerprints, b"k" * 32, 4)


def _with_another_key() -> str:
    comm = world()
    transport: Any = comm._transport
    comm.all_reduce(torch.ones(2)).wait()
    if comm.rank == 1:
        transport.signing_key = b"another"
    with pytest.raises(PeerError) as error:
        comm.all_reduce(torch.ones(2)).wait()
    return str(error.value)


def test_call_without_the_secret_is_rejected() -> None:
    texts = on_ranks(_with_another_key, 2, "gloo")
    assert all(text.startswith("all_reduce(shape (2,), float32, op sum) at test_fingerprint.py") for text in texts)
    blamed = [
        re.search(r"the fingerprint from rank [01] is not signed with the world's secret", text) for text in texts
    ]
    assert all(blamed), texts  # each blames the other, and the first to notice informs both
