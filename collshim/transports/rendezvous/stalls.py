"""Find the ranks that are missing from a call between processes, and where they are, from the world's store."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import NamedTuple, TypeVar

from torch.distributed import DistNetworkError

from collshim.calls.call import Call
from collshim.errors import CollshimError, DeadlineError
from collshim.transports.rendezvous.client import StoreClient, StoreSilentError
from collshim.transports.waiting import chain_of, missing_text

T = TypeVar("T")

GRACE = 0.5
"""How many seconds a rank whose deadline has passed gives its peers to report where they wait."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3
"""How many seconds pass between two queries to the store."""

_SETTLING = "settling"
"""The text of a failure while the rank that gave up is still finding out which ranks are missing; no rank may go on."""

_ANSWER_SECONDS = 0.3
"""How many seconds a rank has to report which line of the program it runs."""

_MOST_ASKED = 16
"""The largest number of ranks that are asked for their line, or are watched for their end."""

_NOWHERE = "is in no collective, or its process has ended"


class _Wait(NamedTuple):
    """A call that a thread of a rank waits in; ``awaited`` are the global ranks that it waits for."""

    group: str
    sequence: int
    awaited: list[int]
    text: str


class _Entry(NamedTuple):
    """A rank's report about itself.

    Attributes:
        waits: the calls that its threads wait in.
        said: its last action, if a wait failed; empty otherwise.
        left: why it makes no further calls; empty if it may make further calls.
        came: by group, the number of calls that it had made when it left.
    """

    waits: list[_Wait]
    said: str
    left: str
    came: dict[str, int]

    def whereabouts(self, *, has_ended: bool) -> str:
        """Return where the rank is, or was when its process ended; empty if it did not report that."""
        waits = " and in ".join(wait.text for wait in self.waits)
        waiting = waits and (f"has ended while it waited in {waits}" if has_ended else f"waits in {waits}")
        return self.left or waiting or self.said


_SILENT = _Entry([], "", "", {})


class StallInspector:
    """Reports this rank's waits to the other ranks, and reads their waits. ``rank`` is the global rank.

    If the store is gone or silent, nothing is known about the other ranks.

    Attributes:
        places: asks ranks which line of the program they run, waiting that many seconds; returns answers by rank.
        has_ended: returns whether the process of a rank is known to have ended.
    """

    def __init__(self, client: StoreClient, rank: int) -> None:
        self.places: Callable[[Sequence[int], float], dict[int, str]] = lambda ranks, seconds: {}
        self.has_ended: Callable[[int], bool] = lambda rank: False
        self._client = client
        self._rank = rank
        self._changing = threading.RLock()  # each thread has its own wait
        self._waits: dict[int, _Wait] = {}
        self._failed: set[int] = set()
        self._said = self._left = ""
        self._came: dict[str, int] = {}
        self._lost = False

    def post(self, group: str, sequence: int, call: Call, awaited: Sequence[int]) -> None:
        """Report that this thread waits for some of these ranks in ``call``, number ``sequence`` of ``group``."""
        self._post(_Wait(group, sequence, [*awaited], str(call)))

    def post_making(self, ranks: Sequence[int], site: str) -> None:
        """Report that this thread makes a group of these global ranks, which waits for all of them."""
        self._post(_Wait("", 0, [], f"making a group of the world's ranks {list(ranks)} at {site}"))

    @contextmanager
    def during_making(self, ranks: Sequence[int], site: str) -> Iterator[None]:
        """Report in a block that this thread makes a group; after an error, report that it gave up."""
        self.post_making(ranks, site)
        try:
            yield
        except CollshimError:
            self.give_up()
            raise
        finally:
            self.clear()

    def _post(self, wait: _Wait) -> None:
        with self._changing:
            self._waits[get_ident()] = wait
            self._client.post(_key(self._rank), self._own())

    def _own(self) -> str:
        return json.dumps(_Entry([*self._waits.values()], self._said, self._left, self._came))

    def clear(self) -> None:
        """Withdraw this thread's report, if it made one; if the group failed, report that it gave up."""
        with self._changing:
            wait, failed = self._waits.pop(get_ident(), None), get_ident() in self._failed
            self._failed.discard(get_ident())
            if wait is not None:
                self._said = f"gave up {wait.text}" if failed else ""
                self._client.post(_key(self._rank), self._own())

    def end(self, group: str, kind: str, text: str) -> tuple[str, str]:
        """Report that ``group`` has failed; return the kind and the text of the first report, which all ranks raise."""
        self.give_up(group)
        own = f"{kind}\n{text}"
        first = self._ask(lambda: self._first_failure(group, own), own)
        kind, _, text = first.partition("\n")
        return kind, text

    def ended(self, group: str) -> tuple[str, str] | None:
        """Return the kind and text of the failure that a rank of ``group`` reported, or None."""
        key, limit = end_key(group), time.monotonic() + 2 * GRACE
        failure = self._texts([key])[0]
        while failure == _SETTLING and time.monotonic() < limit:
            time.sleep(0.02)
            failure = self._texts([key])[0]
        if not failure:
            return None
        if failure == _SETTLING:
            return DeadlineError.__name__, "a rank gave up this group's call, and ended before it reported the reason"
        kind, _, text = failure.partition("\n")
        return kind, text

    def _first_failure(self, group: str, own: str) -> str:
        """Return the failure reported first, which is ``own`` if there was none."""
        failure = self._client.first(end_key(group), own)
        return self._client.first(end_key(group), own, _SETTLING) if failure == _SETTLING else failure

    def give_up(self, group: str = "") -> None:
        """Note that the waits of this thread, and of others in ``group``, failed: their next ``clear`` reports it."""
        with self._changing:
            waits = {ident for ident, wait in self._waits.items() if group and wait.group.startswith(group)}
            self._failed |= waits | {get_ident()}

    def leave(self, why: str, came: dict[str, int]) -> None:
        """Report that this rank makes no further calls, and how many it has made in each group."""
        with self._changing:
            self._left, self._came = why, came
            key, entry = _key(self._rank), self._own()
        self._ask(lambda: self._client.set(key, entry), None)

    def close(self, group: str, came: int) -> None:
        """Report that this rank has closed its end of ``group``, in which it has made ``came`` calls."""
        self._client.post(_closed_key(group, self._rank), str(came))

    def any_left(self, ranks: Sequence[int], group: str = "") -> bool:
        """Return whether one of these global ranks makes no further calls at all, or none in ``group``."""
        others = [rank for rank in ranks if rank != self._rank]
        entries, closed = self._entries_of(others, group)
        return any(entry.left for entry in entries) or any(closed)

    def any_ended(self, ranks: Sequence[int]) -> bool:
        """Return whether the process of one of the first sixteen of these global ranks has ended without a report."""
        others = [rank for rank in ranks if rank != self._rank]
        found = [self.has_ended(rank) for rank in others[:_MOST_ASKED]]  # of all, so that all are watched from now on
        return any(found)

    def await_leaving(self, ranks: Sequence[int], group: str) -> None:
        """Give ranks whose connection broke time to report that they have left, or have closed ``group``."""
        limit = time.monotonic() + GRACE
        while ranks and not self.any_left(ranks, group) and time.monotonic() < limit and not self._unknown():
            time.sleep(0.02)

    def has_left(self, rank: int) -> bool:
        """Return whether a process with this global rank, this one or a different one, has already left the world."""
        return bool(self._entries([rank])[0].left)

    def never_come(self, group: str, ranks: Sequence[int], sequence: int) -> bool:
        """Return whether a rank left the world or closed the group before it made the ``sequence``-th call.

        A rank that left after it made the call is no reason to end the call.
        """
        for rank, entry, closed in zip(ranks, *self._entries_of(ranks, group), strict=True):
            if rank != self._rank and (closed or entry.left):
                came = int(closed) if closed else entry.came.get(group, 0)
                if came <= sequence:
                    return True
        return False

    def whereabouts(self, rank: int, group: str = "") -> str:
        """Say where this global rank is, for error texts, and whether it has closed ``group``."""
        return self._locate([rank], group)[0]

    def _locate(self, ranks: Sequence[int], group: str) -> list[str]:
        """Say where each of these global ranks is, or which line of the program it runs if it did not report that."""
        entries, closed = self._entries_of(ranks, group)
        unknown = self._unknown()
        others = [] if unknown else [rank for rank in ranks[:_MOST_ASKED] if rank != self._rank]
        ended = {rank for rank in others if self.has_ended(rank)}
        said = [
            unknown or entry.whereabouts(has_ended=rank in ended) for rank, entry in zip(ranks, entries, strict=True)
        ]
        silent = [rank for rank, text in zip(ranks, said, strict=True) if not text][:_MOST_ASKED]
        answers = self.places(silent, _ANSWER_SECONDS) if silent else {}
        texts = [text or answers.get(rank, _NOWHERE) for rank, text in zip(ranks, said, strict=True)]
        has_closed = [bool(word) and not entry.left for word, entry in zip(closed, entries, strict=True)]
        return [
            f"has closed this group and {text}" if has else text for has, text in zip(has_closed, texts, strict=True)
        ]

    def missing_text(self, group: str, ranks: Sequence[int], sequence: int, call: Call, *, ends: bool = True) -> str:
        """Return the error text that names the group's ranks that do not wait in this call, and where they are.

        With ``ends``, the call is over, and the other ranks have some time to report where they wait.
        """
        if ends:
            self._ask(lambda: self._client.first(end_key(group), _SETTLING), "")
        limit = time.monotonic() + (GRACE if ends else 0.0)
        absent, present = self._attendance(group, ranks, sequence)
        while absent and time.monotonic() < limit and not self._unknown():
            time.sleep(0.05)
            absent, present = self._attendance(group, ranks, sequence)
        owners = [ranks[rank] for rank in absent]
        located = list(zip(absent, self._locate(owners, group), strict=True))
        return missing_text(str(call), located, present, ranks) + self.chain(owners, ranks)

    def _attendance(self, group: str, ranks: Sequence[int], sequence: int) -> tuple[list[int], list[tuple[int, str]]]:
        """Return the ranks that do not wait in this call of the group, and the ranks that do, with their calls."""
        absent, present = list[int](), list[tuple[int, str]]()
        for rank, (owner, entry) in enumerate(zip(ranks, self._entries(ranks), strict=True)):
            wait = next((wait for wait in entry.waits if (wait.group, wait.sequence) == (group, sequence)), None)
            if wait is not None:
                present.append((rank, wait.text))
            elif owner != self._rank:
                absent.append(rank)
        return absent, present

    def _entries(self, owners: Sequence[int]) -> list[_Entry]:
        return [_entry(text) for text in self._texts([_key(owner) for owner in owners])]

    def _entries_of(self, owners: Sequence[int], group: str) -> tuple[list[_Entry], list[str]]:
        """Return ranks' reports about themselves, and how many calls each had made when it closed ``group``."""
        if not group:
            return self._entries(owners), [""] * len(owners)
        texts = self._texts([*map(_key, owners), *(_closed_key(group, owner) for owner in owners)])
        return [*map(_entry, texts[: len(owners)])], texts[len(owners) :]

    def _awaited(self, owner: int) -> list[int]:
        """Return the global ranks that a rank waits for: the peers it listed, minus those already in the same call."""
        (entry,) = self._entries([owner])
        found = list[int]()
        for wait in entry.waits:
            for rank, other in zip(wait.awaited, self._entries(wait.awaited), strict=True):
                is_there = any(own[:2] == wait[:2] for own in other.waits)
                if rank != owner and not is_there and rank not in found:
                    found.append(rank)
        return found

    def chain(self, absent: Sequence[int], ranks: Sequence[int]) -> str:
        """Say which ranks these global ranks wait for in turn, for error texts; see ``chain_of``."""
        return chain_of(absent, self._awaited, self.whereabouts, self._rank, ranks)

    def _texts(self, keys: Sequence[str]) -> list[str]:
        return self._ask(lambda: self._client.get(keys), [""] * len(keys)) if keys else []

    def _unknown(self) -> str:
        """Say why the other ranks cannot be asked; empty if they can."""
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


def _entry(text: str) -> _Entry:
    if not text:
        return _SILENT
    waits, said, left, came = json.loads(text)
    return _Entry([_Wait(*wait) for wait in waits], said, left, came)


def end_key(group: str) -> str:
    """Return the key of a group's failure in the store."""
    return f"ended/{group}"


def _closed_key(group: str, rank: int) -> str:
    return f"closed/{group}/{rank}"


def keys_of(group: str, ranks: Sequence[int]) -> list[str]:
    """Return the keys that a group's global ranks have left in the store for this module."""
    return [end_key(group), *(_closed_key(group, rank) for rank in ranks)]


def _key(rank: int) -> str:
    return f"waits/{rank}"


def comes_by(question: Callable[[], bool], end: float, longest: float = _LONGEST_PAUSE) -> bool:
    """Return whether the answer is True by the time ``end``; ask repeatedly, at most ``longest`` seconds apart.

    When the store's own wait expires, it prints warnings, for which it might look up host names, which takes seconds.
    It also delays Ctrl-C.
    """
    pause = _SHORTEST_PAUSE
    while not question():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, longest)
    return True
