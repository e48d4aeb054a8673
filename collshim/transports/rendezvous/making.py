"""How a group of processes is made: first all its ranks come, and then gloo connects them; who does not is named."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from collshim.calls.site import caller
from collshim.errors import DeadlineError, PeerError
from collshim.transports.rendezvous.client import StoreClient, StoreSilentError
from collshim.transports.rendezvous.stalls import GRACE, StallInspector, comes_by
from collshim.transports.waiting import FIRST_SLICE, Watched, watch

MARKS = ("came", "connected")
"""What each rank marks in the store."""

PAUSE = 0.01
"""Seconds between two questions whether all ranks have come: many ask at a time."""


class _Step(Watched):
    """A step in the making of a group, that each of its ranks marks in the store when it has done it."""

    mark = ""
    what = ""

    def __init__(
        self,
        client: StoreClient,
        stalls: StallInspector,
        rank: int,
        ranks: Sequence[int],
        key: str,
        refuse: Callable[[], None],
    ) -> None:
        """``refuse`` raises if the ranks of the world disagree on what they were told."""
        self.refuse = refuse
        self.client = client
        self.stalls = stalls
        self.rank = rank
        self.ranks = ranks
        self.keys = {rank: f"{key}/{self.mark}/{rank}" for rank in ranks}
        self.met = f"{key}/met"
        self.within = ""

    def look(self) -> None:
        """Raise if the ranks disagree, or one that is missing has left, if the store answers."""
        with suppress(StoreSilentError):
            self.refuse()
            absent = self.absent()
            if self.stalls.any_left(absent):
                raise PeerError(self.text(absent))

    def whom(self) -> str:
        """See ``Watched``."""
        with suppress(StoreSilentError):
            return self.text(self.absent())
        return ""

    def expire(self) -> None:
        """Raise where a rank is missing, or the store does not say."""
        self.look()
        absent = self.absent()
        if absent:
            raise DeadlineError(self.text(absent, self.within))

    def absent(self) -> list[int]:
        """The ranks without a mark, as far as the store says."""
        marks = self.client.get([self.keys[rank] for rank in self.ranks])
        return [rank for rank, mark in zip(self.ranks, marks, strict=True) if not mark]

    def text(self, absent: Sequence[int], within: str = "") -> str:
        """Who is missing, and where they are."""
        details = "; ".join(f"rank {rank} {self.stalls.whereabouts(rank)}" for rank in absent)
        return f"{making(self.ranks)}: {len(absent)} of {len(self.ranks)} ranks did not {self.what}{within}: {details}"


class Assembly(_Step):
    """All ranks come: gloo's own wait ignores Ctrl-C and ranks that left."""

    mark = MARKS[0]
    what = "come"

    def wait(self, limit: float, seconds: float) -> None:
        """Wait for the others until ``limit``, a time of ``time.monotonic``, which is ``seconds`` after the start."""
        self.within = f" within {seconds:g} s"
        self._mark(self.keys[self.rank], "came", limit)
        try:
            watch(self, self.is_complete, limit, later=FIRST_SLICE)
            self._mark(self.met, "met", limit)
        except BaseException:
            self.client.post(self.keys[self.rank], "")  # ranks that come later must not count this one
            raise

    def _mark(self, key: str, word: str, limit: float) -> None:
        self.client.set(key, word, max(PAUSE, limit - time.monotonic()))

    def is_complete(self, seconds: float) -> bool:
        """Whether all have come, after at most that many seconds."""
        keys = [*self.keys.values()]
        return comes_by(lambda: self._has(keys), time.monotonic() + seconds, PAUSE)

    def _has(self, keys: Sequence[str]) -> bool:
        try:
            return self.client.check(*keys) and not self.absent()
        except StoreSilentError:
            return False


class Mesh(_Step):
    """gloo connects every rank to every other one, in a thread: what it waits for it waits for without a word."""

    mark = MARKS[1]
    what = "connect"

    def made(self, make: Callable[[], Any], limit: float, seconds: float) -> Any:
        """What ``make`` makes, which waits for the other ranks; see ``Assembly.wait`` for the times."""
        self.within = f" within {seconds:g} s"
        over, found = threading.Event(), list[Any]()

        def run() -> None:
            try:
                found.append(make())
            except RuntimeError as error:
                found.append(error)
            over.set()

        threading.Thread(target=run, name="collshim-making", daemon=True).start()
        watch(self, over.wait, limit, later=FIRST_SLICE)
        if isinstance(found[0], RuntimeError):
            raise self._broken(found[0]) from found[0]
        self.client.post(self.keys[self.rank], "connected")
        return found[0]

    def _broken(self, error: RuntimeError) -> PeerError:
        """Who is not there any more, though all came: those who still are say so, and are given time for it."""
        self.client.post(self.keys[self.rank], "failed")
        limit, absent = time.monotonic() + GRACE, list[int]()
        with suppress(StoreSilentError):
            self.refuse()
            while (absent := self.absent()) and time.monotonic() < limit:
                time.sleep(PAUSE)
        if absent:
            return PeerError(self.text(absent))
        return PeerError(f"{making(self.ranks)}: the connection between two of them broke: {error}")


def making(ranks: Sequence[int]) -> str:
    """What error texts call it."""
    return f"making a group of the world's ranks {list(ranks)} at {caller().site()}"
