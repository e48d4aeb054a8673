"""Make a group of processes: all its ranks arrive, then gloo connects them; errors name missing ranks."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from collshim.calls.site import caller
from collshim.errors import CollshimError, DeadlineError, PeerError
from collshim.settings import service_thread
from collshim.transports.rendezvous.client import StoreClient, StoreSilentError
from collshim.transports.rendezvous.stalls import GRACE, StallInspector, comes_by
from collshim.transports.waiting import FIRST_SLICE, Watched, watch

MARKS = ("came", "connected")
"""The marks that each rank sets in the store."""

PAUSE = 0.01
"""How many seconds pass between two checks of whether all ranks have arrived: many ranks ask at the same time."""

_MAKER_SECONDS = 1.0
"""How many seconds the end of the process waits for threads that make groups."""


class _Step(Watched):
    """A step in making a group, which each of its ranks marks in the store once it is done."""

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
        """Make a step; ``refuse`` raises an error if the ranks disagree on the world's size or versions."""
        self.refuse = refuse
        self.client = client
        self.stalls = stalls
        self.rank = rank
        self.ranks = ranks
        self.keys = {rank: f"{key}/{self.mark}/{rank}" for rank in ranks}
        self.met = f"{key}/met"
        self.within = ""

    def check(self) -> None:
        """Raise an error if the ranks disagree, or if a missing rank has left or ended; none if the store is silent."""
        with suppress(StoreSilentError):
            self.refuse()
            absent = self.absent()
            if self.stalls.any_left(absent) or self.stalls.any_ended(absent):
                raise PeerError(self.text(absent))

    def describe(self) -> str:
        """See ``Watched``."""
        with suppress(StoreSilentError):
            return self.text(self.absent())
        return ""

    def expire(self) -> None:
        """Raise an error if a rank is missing, or if the store does not answer."""
        self.check()
        absent = self.absent()
        if absent:
            raise DeadlineError(self.text(absent, self.within))

    def absent(self) -> list[int]:
        """Return the ranks without a mark in the store."""
        marks = self.client.get([self.keys[rank] for rank in self.ranks])
        return [rank for rank, mark in zip(self.ranks, marks, strict=True) if not mark]

    def text(self, absent: Sequence[int], within: str = "") -> str:
        """Return the error text: which ranks are missing, where they are, and which ranks they wait for in turn."""
        details = "; ".join(f"rank {rank} {self.stalls.whereabouts(rank)}" for rank in absent)
        count = f"{len(absent)} of {len(self.ranks)} ranks did not {self.what}{within}"
        return f"{making(self.ranks)}: {count}: {details}{self.stalls.chain(absent, ())}"


class Assembly(_Step):
    """The arrival of all ranks; gloo's own wait would ignore Ctrl-C and ranks that left."""

    mark = MARKS[0]
    what = "arrive"

    def wait(self, limit: float, seconds: float) -> None:
        """Wait for the others until ``limit``, a time of ``time.monotonic`` that is ``seconds`` after the start."""
        self.within = f" within {seconds:g} s"
        self._mark(self.keys[self.rank], "came", limit)
        try:
            watch(self, self.is_complete, limit, later=FIRST_SLICE)
            self._mark(self.met, "met", limit)
        except BaseException:
            self.client.post(self.keys[self.rank], "")  # later ranks must not count this rank
            raise

    def _mark(self, key: str, word: str, limit: float) -> None:
        self.client.set(key, word, max(PAUSE, limit - time.monotonic()))

    def is_complete(self, seconds: float) -> bool:
        """Return whether all ranks have arrived, after a wait of at most that many seconds."""
        keys = [*self.keys.values()]
        return comes_by(lambda: self._has(keys), time.monotonic() + seconds, PAUSE)

    def _has(self, keys: Sequence[str]) -> bool:
        try:
            return self.client.check(*keys) and not self.absent()
        except StoreSilentError:
            return False


_makers = list[threading.Thread]()
"""The threads in which steps wait in C++, some of them for longer than the step's caller."""


def _start_maker(run: Callable[[], None]) -> None:
    _makers[:] = [maker for maker in _makers if maker.is_alive()]
    _makers.append(service_thread(run, name="collshim-making"))
    _makers[-1].start()


def is_under_way() -> bool:
    """Return whether a thread of this process still waits for the ranks of a group."""
    return any(maker.is_alive() for maker in _makers)


@atexit.register  # registered at import, so that it runs after the process has left its world
def await_makers() -> None:
    """Wait a moment: a thread that returned from C++ while the interpreter ends would abort the process."""
    limit = time.monotonic() + _MAKER_SECONDS
    for maker in _makers:
        maker.join(max(0.0, limit - time.monotonic()))


class Mesh(_Step):
    """A step in which ranks wait for each other without naming missing ranks, so that it runs in a thread.

    The step is gloo's: it connects all pairs of ranks.
    """

    mark = MARKS[1]
    what = "connect"

    def made(self, make: Callable[[], Any], limit: float, seconds: float) -> Any:
        """Run ``make``, which waits for the other ranks, and return its result; see ``Assembly.wait`` for the times."""
        self.within = f" within {seconds:g} s"
        over, found = threading.Event(), list[Any]()

        def run() -> None:
            try:
                found.append(make())
            except Exception as error:
                found.append(error)
            over.set()

        _start_maker(run)
        watch(self, over.wait, limit, later=FIRST_SLICE)
        if isinstance(found[0], CollshimError):
            raise found[0]
        if isinstance(found[0], Exception):
            raise self._broken(found[0]) from found[0]
        self.client.post(self.keys[self.rank], "connected")
        return found[0]

    def _broken(self, error: Exception) -> PeerError:
        """Return an error that names the ranks that are gone, after leaving the other ranks time to report it."""
        self.client.post(self.keys[self.rank], "failed")
        limit, absent = time.monotonic() + GRACE, list[int]()
        with suppress(StoreSilentError):
            self.refuse()
            while (absent := self.absent()) and time.monotonic() < limit:
                time.sleep(PAUSE)
        if absent:
            return PeerError(self.text(absent))
        return PeerError(f"{making(self.ranks)}: the connection between two of them broke: {error}")


class Sharing(Mesh):
    """The exchange in which the ranks find out whether they can share memory."""

    mark = "shared"
    what = "say whether they share memory"


def making(ranks: Sequence[int]) -> str:
    """Return the operation's name in error texts."""
    return f"making a group of the world's ranks {list(ranks)} at {caller().site()}"
