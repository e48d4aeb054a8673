"""Who did not come to a call between processes, and where they were instead: told through the world's store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch.distributed import DistNetworkError

from collshim.call import Call

T = TypeVar("T")

GRACE = 0.5
"""Seconds that an expired rank gives its peers to tell where they wait."""

FIRST_SLICE = 0.25
"""Seconds after which a waiting rank tells the others where it waits."""

_NOWHERE = "is in no collective, or its process has ended"
_STORE_IS_GONE = "cannot be asked, because the process that served the world's store has ended"


class Noticeboard:
    """What this rank tells the others about its waits, and reads of theirs. ``rank`` is the global one.

    Where the store is gone nothing is told any more, and nothing is known of the others.
    """

    def __init__(self, store: Any, rank: int) -> None:
        self._store: Any = store
        self._rank = rank
        self._posted = False
        self._lost = False

    def post(self, group: str, call: Call) -> None:
        """Say that this rank waits in ``call`` of ``group``."""
        self._tell(_key(self._rank), f"{group}\n{call.sequence}\n{call}")
        self._posted = True

    def clear(self) -> None:
        """Say that this rank waits no longer, where it said that it did."""
        if self._posted:
            self._posted = False
            self._tell(_key(self._rank), "")

    def end(self, group: str, kind: str, text: str) -> tuple[str, str]:
        """Say that ``group`` has failed; the kind and text of whoever said so first, which all ranks raise."""
        mine = f"{kind}\n{text}"
        first = self._ask(lambda: self._store.compare_set(_end_key(group), "", mine).decode(), mine)
        kind, _, text = first.partition("\n")
        return kind, text

    def ended(self, group: str) -> tuple[str, str] | None:
        """The kind and text of the failure that a rank of ``group`` told of, or None."""
        told = self._told(_end_key(group))
        if not told:
            return None
        kind, _, text = told.partition("\n")
        return kind, text

    def close(self) -> None:
        """Let go of the store: nothing is told any more."""
        self._store = None

    def leave(self, why: str) -> None:
        """Say that this rank comes to no further call."""
        self._tell(_key(self._rank), f"left\n\n{why}")

    def gone(self, ranks: Sequence[int]) -> bool:
        """Whether one of these global ranks has said that it comes to no further call."""
        return any(rank != self._rank and self._read(rank)[0] == "left" for rank in ranks)

    def whereabouts(self, rank: int) -> str:
        """Where this global rank is, for error texts."""
        return self._read(rank)[2]

    def who_did_not_come(self, group: str, ranks: Sequence[int], call: Call) -> str:
        """The error text that names the ranks (in the group) that do not wait in this call, and where they are."""
        limit = time.monotonic() + GRACE
        absent = self._absent(group, ranks, call)
        while absent and time.monotonic() < limit and not self._lost:
            time.sleep(0.05)
            absent = self._absent(group, ranks, call)
        told = "; ".join(f"rank {rank} {where}" for rank, where in absent)
        return f"{call}: {len(absent)} of {len(ranks)} ranks did not come: {told}" if absent else f"{call}: all came"

    def _absent(self, group: str, ranks: Sequence[int], call: Call) -> list[tuple[int, str]]:
        found = []
        for rank, owner in enumerate(ranks):
            there, sequence, what = self._read(owner)
            if owner != self._rank and (there, sequence) != (group, str(call.sequence)):
                found.append((rank, _STORE_IS_GONE if self._lost else what))
        return found

    def _read(self, owner: int) -> tuple[str, str, str]:
        text = self._told(_key(owner))
        if not text:
            return "", "", _NOWHERE
        group, sequence, what = text.split("\n", 2)
        return group, sequence, what if group == "left" else f"waits in {what}"

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


def _end_key(group: str) -> str:
    return f"ended/{group}"


def _key(rank: int) -> str:
    return f"waits/{rank}"
