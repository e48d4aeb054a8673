"""Who did not come to a call between processes, and where they were instead: told through the world's store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch.distributed import DistNetworkError

from collshim.call import Call, in_the_world
from collshim.errors import DeadlineError

T = TypeVar("T")

GRACE = 0.5
"""Seconds that an expired rank gives its peers to tell where they wait."""

FIRST_SLICE = 0.25
"""Seconds after which a waiting rank tells the others where it waits."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3
"""Seconds between two questions to the store."""

_SETTLING = "settling"
"""Stands where a failure's text will: a rank gave up, so nobody may go on, and asks who did not come."""

_LEFT, _ELSEWHERE = "left", "elsewhere"
_IN_WORDS = ("", _LEFT, _ELSEWHERE)
"""Instead of a group's key: what follows is said in words."""

_NOWHERE = "is in no collective, or its process has ended"
_STORE_IS_GONE = "cannot be asked, because the process that served the world's store has ended"


class Noticeboard:
    """What this rank tells the others about its waits, and reads of theirs. ``rank`` is the global one.

    Where the store is gone nothing is told any more, and nothing is known of the others.
    """

    def __init__(self, store: Any, rank: int) -> None:
        self._store: Any = store
        self._rank = rank
        self._posted = ""
        self._failed = False
        self._lost = False

    def post(self, group: str, call: Call) -> None:
        """Say that this rank waits in ``call`` of ``group``."""
        self._tell(_key(self._rank), f"{group}\n{call.sequence}\n{call}")
        self._posted = str(call)

    def post_making(self, ranks: Sequence[int], site: str) -> None:
        """Say that this rank makes a group of these global ranks, which waits for all of them."""
        self._posted = f"making a group of the world's ranks {list(ranks)} at {site}"
        self._tell(_key(self._rank), f"{_ELSEWHERE}\n\nwaits in {self._posted}")

    def clear(self) -> None:
        """Say that this rank waits no longer, where it said that it did; if the group failed, that it gave up."""
        if self._posted:
            self._tell(_key(self._rank), f"{_ELSEWHERE}\n\ngave up {self._posted}" if self._failed else "")
            self._posted, self._failed = "", False

    def end(self, group: str, kind: str, text: str) -> tuple[str, str]:
        """Say that ``group`` has failed; the kind and text of whoever said so first, which all ranks raise."""
        self.give_up()
        mine = f"{kind}\n{text}"
        first = self._ask(lambda: self._first(group, mine), mine)
        kind, _, text = first.partition("\n")
        return kind, text

    def ended(self, group: str) -> tuple[str, str] | None:
        """The kind and text of the failure that a rank of ``group`` told of, or None."""
        told, limit = self._told(_end_key(group)), time.monotonic() + 2 * GRACE
        while told == _SETTLING and time.monotonic() < limit:
            time.sleep(0.02)
            told = self._told(_end_key(group))
        if not told:
            return None
        if told == _SETTLING:
            return DeadlineError.__name__, "a rank gave this group's call up, and ended before it said why"
        kind, _, text = told.partition("\n")
        return kind, text

    def _first(self, group: str, mine: str) -> str:
        """The failure that stands, ``mine`` where none did."""
        found = str(self._store.compare_set(_end_key(group), "", mine).decode())
        return str(self._store.compare_set(_end_key(group), _SETTLING, mine).decode()) if found == _SETTLING else found

    def give_up(self) -> None:
        """What this rank waits in has failed: the next ``clear`` says so to ranks that wait for it elsewhere."""
        self._failed = True

    def close(self) -> None:
        """Let go of the store: nothing is told any more."""
        self._store = None

    def leave(self, why: str) -> None:
        """Say that this rank comes to no further call."""
        self._tell(_key(self._rank), f"{_LEFT}\n\n{why}")

    def gone(self, ranks: Sequence[int]) -> bool:
        """Whether one of these global ranks has said that it comes to no further call."""
        return any(rank != self._rank and self._read(rank)[0] == _LEFT for rank in ranks)

    def whereabouts(self, rank: int) -> str:
        """Where this global rank is, for error texts."""
        there, _, what = self._read(rank)
        return _where(there, what)

    def who_did_not_come(self, group: str, ranks: Sequence[int], call: Call) -> str:
        """The error text that names the ranks (in the group) that do not wait in this call, and where they are."""
        self._ask(lambda: self._store.compare_set(_end_key(group), "", _SETTLING), None)
        limit = time.monotonic() + GRACE
        absent = self._absent(group, ranks, call)
        while absent and time.monotonic() < limit and not self._lost:
            time.sleep(0.05)
            absent = self._absent(group, ranks, call)
        if not absent:
            return f"{call}: all came"
        told = [f"rank {rank} {where}" for rank, where in absent]
        came = self._came(group, ranks, call)
        if len({what for _, what in came}) > 1:  # then who came may be why the others are elsewhere
            told += [f"rank {rank} came with {what}" for rank, what in came]
        return f"{call}: {len(absent)} of {len(ranks)} ranks did not come: {'; '.join(told)}{in_the_world(ranks)}"

    def _came(self, group: str, ranks: Sequence[int], call: Call) -> list[tuple[int, str]]:
        """Who waits in this call of the group, and with which call of theirs."""
        read = [(rank, *self._read(owner)) for rank, owner in enumerate(ranks)]
        return [(rank, what) for rank, key, sequence, what in read if (key, sequence) == (group, str(call.sequence))]

    def _absent(self, group: str, ranks: Sequence[int], call: Call) -> list[tuple[int, str]]:
        found = []
        for rank, owner in enumerate(ranks):
            there, sequence, what = self._read(owner)
            if owner != self._rank and (there, sequence) != (group, str(call.sequence)):
                found.append((rank, _STORE_IS_GONE if self._lost else _where(there, what)))
        return found

    def _read(self, owner: int) -> tuple[str, str, str]:
        text = self._told(_key(owner))
        if not text:
            return "", "", _NOWHERE
        group, sequence, what = text.split("\n", 2)
        return group, sequence, what

    def _tell(self, key: str, text: str) -> None:
        self._ask(lambda: self._store.set(key, text), None)

    def _told(self, key: str) -> str:
        return self._ask(lambda: self._store.get(key).decode() if self._store.check([key]) else "", "")

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        if self._store is None:
            return otherwise
        try:
            return question()
        except DistNetworkError:
            self._lost = True
            return otherwise


def _where(there: str, what: str) -> str:
    return f"waits in {what}" if there not in _IN_WORDS else what


def _end_key(group: str) -> str:
    return f"ended/{group}"


def _key(rank: int) -> str:
    return f"waits/{rank}"


def comes_by(question: Callable[[], bool], end: float, longest: float = _LONGEST_PAUSE) -> bool:
    """Whether the answer is yes by then; asked again and again, at most ``longest`` seconds apart.

    The store's own wait, when it expires, prints warnings and may look up host names for them, for seconds; and it
    holds Ctrl-C up.
    """
    pause = _SHORTEST_PAUSE
    while not question():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return True
