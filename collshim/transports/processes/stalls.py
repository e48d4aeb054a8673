"""Which ranks are missing from a call between processes, and where they are instead, through the world's store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from torch.distributed import DistNetworkError

from collshim.calls.call import Call
from collshim.errors import DeadlineError
from collshim.transports.processes.client import StoreClient, StoreSilentError
from collshim.transports.waiting import chain_of, missing_text

T = TypeVar("T")

GRACE = 0.5
"""Seconds that an expired rank gives its peers to tell where they wait."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3
"""Seconds between two questions to the store."""

_SETTLING = "settling"
"""Stands where a failure's text will: a rank gave up, so none may go on, and reads which ranks are missing."""

_LEFT, _ELSEWHERE = "left", "elsewhere"
_IN_WORDS = ("", _LEFT, _ELSEWHERE)
"""Instead of a group's key: what follows is said in words."""

_NOWHERE = "is in no collective, or its process has ended"


class _Entry(NamedTuple):
    """What a rank has told of itself: a group's key, a call's number and text and the ranks it waits for, or words."""

    group: str
    sequence: str
    awaited: str
    text: str

    @property
    def whereabouts(self) -> str:
        return self.text if self.group in _IN_WORDS else f"waits in {self.text}"


class StallInspector:
    """What this rank tells the others about its waits, and reads of theirs. ``rank`` is the global one.

    Where the store is gone, or silent, nothing is known of the others.
    """

    def __init__(self, client: StoreClient, rank: int) -> None:
        self._client = client
        self._rank = rank
        self._waits_in = ""
        self._failed = False
        self._lost = False

    def post(self, group: str, sequence: int, call: Call, awaited: Sequence[int]) -> None:
        """Say that this rank waits in ``call``, the ``sequence``-th of ``group``, for these global ranks, or some."""
        others = ",".join(map(str, awaited))
        self._client.post(_key(self._rank), f"{group}\n{sequence}\n{others}\n{call}")
        self._waits_in = str(call)

    def post_making(self, ranks: Sequence[int], site: str) -> None:
        """Say that this rank makes a group of these global ranks, which waits for all of them."""
        self._waits_in = f"making a group of the world's ranks {list(ranks)} at {site}"
        self._client.post(_key(self._rank), f"{_ELSEWHERE}\n\n\nwaits in {self._waits_in}")

    def clear(self) -> None:
        """Say that this rank waits no longer, where it said that it did; if the group failed, that it gave up."""
        if self._waits_in:
            self._client.post(_key(self._rank), f"{_ELSEWHERE}\n\n\ngave up {self._waits_in}" if self._failed else "")
            self._waits_in, self._failed = "", False

    def end(self, group: str, kind: str, text: str) -> tuple[str, str]:
        """Say that ``group`` has failed; the kind and text of the first rank that said so, which all ranks raise."""
        self.give_up()
        own = f"{kind}\n{text}"
        first = self._ask(lambda: self._first_failure(group, own), own)
        kind, _, text = first.partition("\n")
        return kind, text

    def ended(self, group: str) -> tuple[str, str] | None:
        """The kind and text of the failure that a rank of ``group`` wrote, or None."""
        failure, limit = self._texts([_end_key(group)])[0], time.monotonic() + 2 * GRACE
        while failure == _SETTLING and time.monotonic() < limit:
            time.sleep(0.02)
            failure = self._texts([_end_key(group)])[0]
        if not failure:
            return None
        if failure == _SETTLING:
            return DeadlineError.__name__, "a rank gave this group's call up, and ended before it said why"
        kind, _, text = failure.partition("\n")
        return kind, text

    def _first_failure(self, group: str, own: str) -> str:
        """The failure that stands, ``own`` where none did."""
        failure = self._client.first(_end_key(group), own)
        return self._client.first(_end_key(group), own, _SETTLING) if failure == _SETTLING else failure

    def give_up(self) -> None:
        """What this rank waits in has failed: the next ``clear`` says so to ranks that wait for it elsewhere."""
        self._failed = True

    def leave(self, why: str) -> None:
        """Say that this rank makes no further call."""
        key, entry = _key(self._rank), f"{_LEFT}\n\n\n{why}"
        self._ask(lambda: self._client.set(key, entry), None)

    def any_left(self, ranks: Sequence[int]) -> bool:
        """Whether one of these global ranks has said that it comes to no further call."""
        others = [rank for rank in ranks if rank != self._rank]
        return any(entry.group == _LEFT for entry in self._entries(others))

    def whereabouts(self, rank: int) -> str:
        """Where this global rank is, for error texts."""
        (entry,) = self._entries([rank])
        return self._unknown() or entry.whereabouts

    def missing_text(self, group: str, ranks: Sequence[int], sequence: int, call: Call) -> str:
        """The error text that names the ranks (in the group) that do not wait in this call, and where they are."""
        self._ask(lambda: self._client.first(_end_key(group), _SETTLING), "")
        limit = time.monotonic() + GRACE
        absent, present = self._attendance(group, ranks, sequence)
        while absent and time.monotonic() < limit and not self._unknown():
            time.sleep(0.05)
            absent, present = self._attendance(group, ranks, sequence)
        chain = self.chain([ranks[rank] for rank, _ in absent], ranks)
        return missing_text(str(call), absent, present, ranks) + chain

    def _attendance(
        self, group: str, ranks: Sequence[int], sequence: int
    ) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
        """The ranks that do not wait in this call of the group, and where they are; those that do, and their calls."""
        absent, present = list[tuple[int, str]](), list[tuple[int, str]]()
        for rank, (owner, entry) in enumerate(zip(ranks, self._entries(ranks), strict=True)):
            if entry[:2] == (group, str(sequence)):
                present.append((rank, entry.text))
            elif owner != self._rank:
                absent.append((rank, self._unknown() or entry.whereabouts))
        return absent, present

    def _entries(self, owners: Sequence[int]) -> list[_Entry]:
        texts = self._texts([_key(owner) for owner in owners])
        return [_Entry(*text.split("\n", 3)) if text else _Entry("", "", "", _NOWHERE) for text in texts]

    def _awaited(self, owner: int) -> list[int]:
        """The global ranks that a rank waits for: of those that it named, the ones that are not in the same call."""
        (entry,) = self._entries([owner])
        named = [int(rank) for rank in entry.awaited.split(",") if rank]
        others = self._entries(named)
        return [rank for rank, other in zip(named, others, strict=True) if rank != owner and other[:2] != entry[:2]]

    def chain(self, absent: Sequence[int], ranks: Sequence[int]) -> str:
        """Whom these global ranks wait for in turn, for error texts; see ``chain_of``."""
        return chain_of(absent, self._awaited, self.whereabouts, self._rank, ranks)

    def _texts(self, keys: Sequence[str]) -> list[str]:
        return self._ask(lambda: self._client.get(keys), [""] * len(keys)) if keys else []

    def _unknown(self) -> str:
        """Why the other ranks cannot be asked; empty where they can."""
        if self._lost:
            return f"cannot be asked: {self._client.server}, which served the store, has ended"
        silent = self._client.silent_for
        if silent:
            server = f"{self._client.server}, which serves the store,"
            return f"cannot be asked: {server} has not answered for {silent:.1f} s"
        return ""

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except DistNetworkError:
            self._lost = True
        except StoreSilentError:
            pass
        return otherwise


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
