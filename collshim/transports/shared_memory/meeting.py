"""Find out whether the ranks of a group can share memory: they try it, and agree on the outcome."""

from __future__ import annotations

import ctypes
import hmac
import os
import secrets
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from collshim.errors import WorldError
from collshim.transports.shared_memory import core, segment, yama
from collshim.transports.shared_memory.group import SharedMemory, segment_bytes_for
from collshim.transports.shared_memory.segment import TOKEN_BYTES, Segment

AUTO, GLOO, SHARED_MEMORY = CHOICES = ("auto", "gloo", "shared_memory")
"""The transports that can carry the data of CPU tensors between processes."""

_OFFER = struct.Struct(f"<BBiiQ{TOKEN_BYTES}s")
_OUTCOME = struct.Struct("<BBB")

Gather = Callable[[bytes], list[bytes]]
"""Returns the bytes of all ranks, in rank order, given this rank's; all have the same length."""


class _Offer(NamedTuple):
    """The facts that a rank sends to the others before the memory is mapped.

    Attributes:
        choice: the index of its choice in ``CHOICES``; ``can``: whether it has a ring.
        process, file: its process, and the descriptor of the memory there; -1 if it made none.
        address: the address of its own nonce in its memory.
        nonce: random bytes.
    """

    choice: int
    can: int
    process: int
    file: int
    address: int
    nonce: bytes


class _Outcome(NamedTuple):
    """The facts that a rank sends to the others afterwards.

    Attributes:
        has_mapped: whether it has mapped the memory; ``reads_far``: whether it may read the other ranks' own memory.
        has_gpu: whether its calls can be on a GPU.
    """

    has_mapped: int
    reads_far: int
    has_gpu: int


def meet(
    gather: Gather, choice: str, rank: int, size: int, secret: bytes, key: str, *, has_gpu: bool
) -> SharedMemory | None:
    """Return this rank's end of the group's shared memory; None if some rank cannot map it, or chose gloo.

    Args:
        gather: exchanges bytes with the group's other ranks; called once, and again if all ranks want shared memory.
        choice: one of ``CHOICES``; a rank that chose "shared_memory" raises if that is not possible.
        rank, size: this rank in the group, and the group's size.
        secret: the world's secret, from which the memory's token is made; can be empty.
        key: the group's name.
        has_gpu: whether this rank's calls can be on a GPU.

    Raises:
        WorldError: a rank requires shared memory, and the group cannot have it; on every rank.
    """
    nonce = secrets.token_bytes(TOKEN_BYTES)
    kept = ctypes.create_string_buffer(nonce, TOKEN_BYTES)
    can = core.Ring is not None and size > 1
    mine = _prepare(rank, size, _token(secret, nonce, key)) if can and choice != GLOO else None
    try:
        own = _Offer(
            CHOICES.index(choice), can, os.getpid(), -1 if mine is None else mine[0], ctypes.addressof(kept), nonce
        )
        offers = [_Offer(*_OFFER.unpack(offer)) for offer in gather(_OFFER.pack(*own))]
        if not _is_offered(offers):
            _require(offers, range(size), rank)
            return None
        found = mine[1] if mine is not None else _join(offers[0], size, _token(secret, offers[0].nonce, key))
        reads_far = found is not None and _reads_far(offers, rank)
        outcome = _OUTCOME.pack(found is not None, reads_far, has_gpu)
        outcomes = [_Outcome(*_OUTCOME.unpack(outcome)) for outcome in gather(outcome)]
    finally:
        if mine is not None:
            os.close(mine[0])
    unmapped = [other for other, outcome in enumerate(outcomes) if not outcome.has_mapped]
    if found is None or unmapped:
        _require(offers, unmapped, rank)
        return None
    processes, reads_far = [offer.process for offer in offers], all(outcome.reads_far for outcome in outcomes)
    carries_all = not any(outcome.has_gpu for outcome in outcomes)
    return SharedMemory(found, rank, size, processes, reads_far=reads_far, carries_all=carries_all)


def _prepare(rank: int, size: int, token: bytes) -> tuple[int, Segment] | None:
    """Permit other processes to read this one's memory; on rank 0, make the memory to share, if that is possible."""
    yama.permit_reads()
    if rank == 0:
        with suppress(OSError):
            return segment.make(segment_bytes_for(size), token)
    return None


def _token(secret: bytes, nonce: bytes, key: str) -> bytes:
    return hmac.digest(secret, nonce + key.encode(), "sha256")


def _is_offered(offers: Sequence[_Offer]) -> bool:
    """Return whether every rank wants shared memory and has a ring, and rank 0 has made the memory."""
    return all(offer.can and CHOICES[offer.choice] != GLOO for offer in offers) and offers[0].file >= 0


def _join(offer: _Offer, size: int, token: bytes) -> Segment | None:
    return segment.join(offer.process, offer.file, segment_bytes_for(size), token)


def _reads_far(offers: Sequence[_Offer], rank: int) -> bool:
    """Return whether this process may read the others' memory, by reading the nonces that they announced."""
    if core.read_far is None:
        return False
    target = ctypes.create_string_buffer(TOKEN_BYTES)
    for other, offer in enumerate(offers):
        if other == rank:
            continue
        if not core.read_far(offer.process, offer.address, ctypes.addressof(target), TOKEN_BYTES):
            return False
        if target.raw != offer.nonce:
            return False
    return True


def _require(offers: Sequence[_Offer], unmapped: Sequence[int], rank: int) -> None:
    """Raise an error if a rank requires shared memory, which the group cannot have."""
    requiring = [other for other, offer in enumerate(offers) if CHOICES[offer.choice] == SHARED_MEMORY]
    if not requiring:
        return
    refusing = [other for other, offer in enumerate(offers) if CHOICES[offer.choice] == GLOO]
    lacking = [other for other, offer in enumerate(offers) if not offer.can]
    if refusing:
        why = f"{_ranks(refusing)} chose gloo"
    elif lacking:
        why = (
            f"{_ranks(lacking)} cannot use it: {core.description()}"
            if rank in lacking
            else f"{_ranks(lacking)} cannot use it"
        )
    else:
        why = f"{_ranks(unmapped)} cannot map the memory of rank 0, perhaps because they run on another host"
    raise WorldError(f"transport is 'shared_memory' on {_ranks(requiring)}, but {why} (rank {rank} of {len(offers)})")


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
