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
_OUTCOME = struct.Struct("<BB")

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


def meet(gather: Gather, choice: str, rank: int, size: int, secret: bytes, key: str) -> SharedMemory | None:
    """Return this rank's end of the group's shared memory; None if some rank cannot map it, or chose gloo.

    Args:
        gather: exchanges bytes with the group's other ranks.
        choice: one of ``CHOICES``; a rank that chose "shared_memory" raises if that is not possible.
        rank, size: this rank in the group, and the group's size.
        secret: the world's secret, from which the memory's token is made; can be empty.
        key: the group's name.

    Raises:
        WorldError: a rank requires shared memory, and the group cannot have it; on every rank.
    """
    nonce = secrets.token_bytes(TOKEN_BYTES)
    kept = ctypes.create_string_buffer(nonce, TOKEN_BYTES)
    can = core.Ring is not None and size > 1
    mine: tuple[int, Segment] | None = None
    if can and choice != GLOO:
        yama.permit_reads()
    if can and rank == 0 and choice != GLOO:
        with suppress(OSError):
            mine = segment.make(segment_bytes_for(size), _token(secret, nonce, key))
    try:
        own = _Offer(
            CHOICES.index(choice), can, os.getpid(), -1 if mine is None else mine[0], ctypes.addressof(kept), nonce
        )
        offers = [_Offer(*_OFFER.unpack(offer)) for offer in gather(_OFFER.pack(*own))]
        found = _map(offers, rank, size, None if mine is None else mine[1], _token(secret, offers[0].nonce, key))
        reads_far = found is not None and _reads_far(offers, rank)
        outcomes = [_OUTCOME.unpack(outcome) for outcome in gather(_OUTCOME.pack(found is not None, reads_far))]
    finally:
        if mine is not None:
            os.close(mine[0])
    if found is None or not all(has_mapped for has_mapped, _ in outcomes):
        _require(offers, outcomes, rank)
        return None
    processes = [offer.process for offer in offers]
    return SharedMemory(found, rank, size, processes, reads_far=all(far for _, far in outcomes))


def _token(secret: bytes, nonce: bytes, key: str) -> bytes:
    return hmac.digest(secret, nonce + key.encode(), "sha256")


def _map(offers: Sequence[_Offer], rank: int, size: int, own: Segment | None, token: bytes) -> Segment | None:
    """Map the memory of rank 0, if every rank wants shared memory and has a ring."""
    if not all(offer.can and CHOICES[offer.choice] != GLOO for offer in offers) or offers[0].file < 0:
        return None
    return own if rank == 0 else segment.join(offers[0].process, offers[0].file, segment_bytes_for(size), token)


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


def _require(offers: Sequence[_Offer], outcomes: Sequence[tuple[int, int]], rank: int) -> None:
    """Raise an error if a rank requires shared memory, which the group cannot have."""
    requiring = [other for other, offer in enumerate(offers) if CHOICES[offer.choice] == SHARED_MEMORY]
    if not requiring:
        return
    refusing = [other for other, offer in enumerate(offers) if CHOICES[offer.choice] == GLOO]
    lacking = [other for other, offer in enumerate(offers) if not offer.can]
    unmapped = [other for other, (has_mapped, _) in enumerate(outcomes) if not has_mapped]
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
