"""Make a group of processes: its ranks arrive and share memory, or gloo connects them; errors name missing ranks."""

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

PAUSE = 0.01
"""How many seconds pass between two checks of whether all ranks have arrived: many ranks ask at the same time."""

_GAVE_UP = "gave up"
"""The mark of a rank that no longer waits for the others: later ranks must not count it."""

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
        """Return the ranks without a mark in the store or, if all have one, those that gave up."""
        marks = self.client.get([*self.keys.values()])
        return [rank for rank, mark in zip(self.ranks, marks, strict=True) if not mark] or [
            rank for rank, mark in zip(self.ranks, marks, strict=True) if mark == _GAVE_UP
        ]

    def text(self, absent: Sequence[int], within: str = "") -> str:
        """Return the error text: which ranks are missing, where they are, and which ranks they wait for in turn."""
        details = "; ".join(f"rank {rank} {self.stalls.whereabouts(rank)}" for rank in absent)
        count = f"{len(absent)} of {len(self.ranks)} ranks did not {self.what}{within}"
        return f"{making(self.ranks)}: {count}: {details}{self.stalls.chain(absent, ())}"


class _Gathering(_Step):
    """A step in which each rank's mark is a word, which the other ranks wait for."""

    def __init__(self, *parts: Any) -> None:
        """See ``_Step``."""
        super().__init__(*parts)
        self._words = list[str]()

    def gather(self, word: str, limit: float, seconds: float) -> list[str]:
        """Return the words of all ranks, in the group's order, given this rank's.

        The wait ends at ``limit``, a time of ``time.monotonic`` that is ``seconds`` after the start.
        """
        self.within = f" within {seconds:g} s"
        own = self.keys[self.rank]
        self.client.set(own, word, max(PAUSE, limit - time.monotonic()))
        try:
            watch(self, self.is_complete, limit, later=FIRST_SLICE)
        except BaseException:
            self.client.post(own, _GAVE_UP)
            raise
        return self._words

    def is_complete(self, seconds: float) -> bool:
        """Return whether all ranks have their words in the store, after a wait of at most that many seconds."""
        return comes_by(self._has_all, time.monotonic() + seconds, PAUSE)

    def _has_all(self) -> bool:
        with suppress(StoreSilentError):
            self._words = self.client.get_all([*self.keys.values()])
        return bool(self._words) and all(word not in ("", _GAVE_UP) for word in self._words)


class Assembly(_Gathering):
    """The arrival of all ranks; gloo's own wait would ignore Ctrl-C and ranks that left."""

    mark = "came"
    what = "arrive"

    def gather(self, word: str, limit: float, seconds: float) -> list[str]:
        """See ``_Gathering.gather``; afterwards the group's key is used up."""
        words = super().gather(word, limit, seconds)
        self.client.post(self.met, "met")
        return words


class Sharing(_Gathering):
    """The exchange in which the ranks find out whether they can share memory."""

    mark = "shared"
    what = "say whether they share memory"


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

    mark = "connected"
    what = "connect"

    def made(self, make: Callable[[], Any], limit: float, seconds: float) -> Any:
        """Run ``make``, which waits for the other ranks, and return its result; see ``gather`` for the times."""
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


def making(ranks: Sequence[int]) -> str:
    """Return the operation's name in error texts."""
    return f"making a group of the world's ranks {list(ranks)} at {caller().site()}"
