"""What a send or recv looks at while it waits: has its group ended, have its peers left, is the deadline over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch.distributed import DistNetworkError

from collshim.call import in_the_world
from collshim.errors import CommunicationError, DeadlineError, PeerError
from collshim.transports.absence import FIRST_SLICE

if TYPE_CHECKING:
    from collshim.transports.parcel import Parcel
    from collshim.transports.process_group import ProcessGroupTransport

_LATER_SLICE = 0.5
"""Seconds between later looks."""

_PATIENCE, _SLOWEST = 1.0, 5e7
"""Seconds, and bytes per second: how long data may move after its peer came to no further call."""

_STORE_IS_GONE = "letters: the process that served the world's store has ended, and with it the letters that were in it"


class Lookout:
    """One rank's within one group."""

    def __init__(self, transport: ProcessGroupTransport) -> None:
        self._transport = transport
        self._looked = float("-inf")

    def keep(self, parcel: Parcel, limit: float | None, over: Callable[[float], bool]) -> None:
        """Wait until ``over``, which waits for that many seconds itself; the others hear where this rank waits."""
        board, seconds = self._transport.rendezvous.board, FIRST_SLICE
        try:
            while not over(_slice(seconds, limit)):
                board.post(f"{self._transport.key}/letters", parcel.call)
                self._refuse_if_late(parcel, limit)
                self.look(parcel)
                seconds = _LATER_SLICE if parcel.arrived else FIRST_SLICE
        finally:
            board.clear()

    def look(self, parcel: Parcel) -> None:
        """Raise where nothing can come of ``parcel`` any more."""
        self._transport.refuse_if_broken()
        self._refuse_if_ended()
        gone = self._are_gone(parcel)
        if gone and not parcel.arrived:  # a letter was in the store before its sender left
            parcel.collect()
        if gone and (_is_overdue(parcel) if parcel.arrived else True):
            raise self.end(parcel, PeerError, "nobody else will come")

    def look_now_and_then(self) -> None:
        """Raise where another rank has ended the group; who sends much asks seldom."""
        if time.monotonic() - self._looked > FIRST_SLICE:
            self._refuse_if_ended()

    def end(self, parcel: Parcel, kind: type[CommunicationError], why: str) -> CommunicationError:
        """End the group; the failure to raise."""
        what = f"{'the data did not move' if parcel.arrived else 'nothing was sent'}, {why}"
        return self._transport.end(kind, self._told(parcel, what))

    def broken(self, parcel: Parcel, error: RuntimeError) -> CommunicationError:
        """End the group, for what torch raised; the failure to raise."""
        if isinstance(error, DistNetworkError):
            return self.without_store(error)
        what = f"the data did not move, the connection broke ({without_source(error)})"
        failure = self._transport.end(PeerError, self._told(parcel, what))
        failure.__cause__ = error
        return failure

    def without_store(self, error: DistNetworkError) -> CommunicationError:
        """End the group, whose letters are lost; the failure to raise."""
        failure = self._transport.end(PeerError, _STORE_IS_GONE)
        failure.__cause__ = error
        return failure

    def _refuse_if_late(self, parcel: Parcel, limit: float | None) -> None:
        if limit is not None and time.monotonic() >= limit and not parcel.is_over():
            raise self.end(parcel, DeadlineError, "the deadline passed")

    def _refuse_if_ended(self) -> None:
        self._looked = time.monotonic()
        told = self._transport.rendezvous.board.ended(self._transport.key)
        if told is not None:
            raise self._transport.end(PeerError, told[1])

    def _are_gone(self, parcel: Parcel) -> bool:
        """Whether all peers that ``parcel`` may still wait for come to no further call."""
        board, awaited = self._transport.rendezvous.board, self._awaited(parcel)
        gone = bool(awaited) and all(board.gone([self._transport.ranks[rank]]) for rank in awaited)
        if not gone:
            parcel.gone_since = None
        elif parcel.gone_since is None:
            parcel.gone_since = time.monotonic()
        return gone

    def _awaited(self, parcel: Parcel) -> list[int]:
        transport, peer = self._transport, parcel.source if parcel.call.root is None else parcel.call.root
        return [rank for rank in range(transport.size) if rank != transport.rank] if peer is None else [peer]

    def _told(self, parcel: Parcel, what: str) -> str:
        """The call, and whose it is, since the failure ends the group on all ranks; and where its peers are."""
        board, ranks = self._transport.rendezvous.board, self._transport.ranks
        peers = "; ".join(f"rank {rank} {board.whereabouts(ranks[rank])}" for rank in self._awaited(parcel))
        return f"{parcel.call} on rank {self._transport.rank}: {what}: {peers}{in_the_world(ranks)}"


def _is_overdue(parcel: Parcel) -> bool:
    """Whether the data had time to move since its peer left; where its sender wrote of it, it moves or breaks off."""
    if parcel.announced or parcel.gone_since is None:
        return False
    return time.monotonic() - parcel.gone_since > _PATIENCE + parcel.nbytes / _SLOWEST


def without_source(error: RuntimeError) -> str:
    """What gloo says, without the line of its own source that it says it from and its guess at a cause."""
    told = str(error).partition("\n")[0].partition(". ")[0]
    return told.partition("] ")[2] or told if told.startswith("[") else told


def _slice(seconds: float, limit: float | None) -> float:
    return seconds if limit is None else max(0.001, min(seconds, limit - time.monotonic()))
