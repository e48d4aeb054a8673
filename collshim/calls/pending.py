"""A rank's calls that were posted and not waited for: what two of them write, what changed meanwhile, what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import count
from threading import RLock
from typing import Any, TypeAlias
from weakref import ref

from torch import Tensor

from collshim.calls.aliasing import Span, spans
from collshim.calls.plan import Plan
from collshim.calls.site import Caller, warn_at
from collshim.layout import Parts
from collshim.work import Work

Entry: TypeAlias = "tuple[ref[Work[Any]], str, Plan, Caller]"

_COMPARED = 32
"""Calls, the latest ones, whose memory is compared with that of a new one."""


class PendingCalls:
    """A rank's, of all its groups; its threads may post and wait at the same time.

    ``Posting`` sets the latest call where the ranks tell each other their lines, and its wait takes it out. Only where
    another one comes first it is entered here: most calls are waited for at once.

    Attributes:
        lock: held while what follows changes; by one thread twice if the collector closes a group meanwhile.
        latest: the last call that was posted: its work, its group's key, its plan, and where it was called; None where
            it was waited for.
        last: the plan of the last call, and where it was made if the ranks tell each other; None before the first.
        entries: those before it, by number, with a reference to the work that does not keep it.
    """

    __slots__ = ("_dropped", "_most", "_numbers", "entries", "last", "latest", "lock")

    def __init__(self) -> None:
        self.lock = RLock()
        self.latest: tuple[Work[Any], str, Plan, Caller] | None = None
        self.last: tuple[Plan, Caller | None] | None = None
        self.entries: dict[int, Entry] = {}
        self._numbers = count()
        self._dropped: dict[str, Counter[str]] = {}
        self._most = 2 * _COMPARED

    def last_call(self) -> str:
        """The last call that was posted, with its line; empty before the first."""
        if self.last is None:
            return ""
        plan, caller = self.last
        return str(plan.call if caller is None else plan.call._replace(site=caller.site()))

    def compare(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> None:
        """Warn where a call that is to be posted writes what a pending one writes or reads, or reads what one writes.

        The result would depend on which is quicker; on CUDA their stream orders them.
        """
        with self.lock:
            self.enter_latest()
            latest_entries = [*self.entries.values()][-_COMPARED:]
            if len(self.entries) > self._most:
                self._forget_dropped()
                self._most = 2 * max(len(self.entries), _COMPARED)
        if plan.on_cpu:
            read, written = spans(inputs), spans(outputs)
            for entry in reversed(latest_entries):
                work = entry[0]()
                if work is not None and entry[2].on_cpu:
                    _warn_of_overlap(plan, read, written, caller, work)

    def enter_latest(self) -> None:
        """Move the latest call among the entries, if it was not waited for; ``lock`` is held."""
        latest, self.latest = self.latest, None
        if latest is not None:
            work, key, plan, caller = latest
            work._number = next(self._numbers)
            self.entries[work._number] = ref(work), key, plan, caller
            if work._pending is None:  # another thread has waited for it meanwhile
                self.entries.pop(work._number, None)

    def _forget_dropped(self) -> None:
        """The program let go of a work that it did not wait for: what is to be told of it takes no more room."""
        for number, (work, key, plan, caller) in self.entries.copy().items():
            if work() is None and self.entries.pop(number, None) is not None:
                self._dropped.setdefault(key, Counter())[_told(plan, caller)] += 1

    def leaks(self, key: str, told: Iterable[Work[Any]] = ()) -> list[str]:
        """The calls of a group that were not waited for, but those of which all is ``told``; once."""
        for one in told:
            one.free()
        with self.lock:
            self.enter_latest()
            self._forget_dropped()
            texts = self._dropped.pop(key, Counter())
            for number, (work, other, plan, caller) in self.entries.copy().items():
                if other == key and self.entries.pop(number, None) is not None and not _is_awaited(work()):
                    texts[_told(plan, caller)] += 1
        return [f"{text}{times(count)} was not waited for" for text, count in texts.items()]


def _is_awaited(work: Work[Any] | None) -> bool:
    """Whether another thread is in its wait, which the group's end breaks off."""
    return work is not None and work._claim is None and not work._settled


def _told(plan: Plan, caller: Caller) -> str:
    return f"{plan.call._replace(site=caller.site())} on rank {plan.rank}"


def times(count: int) -> str:
    """How often, where that is more than once."""
    return f" ({count} times)" if count > 1 else ""


def _warn_of_overlap(plan: Plan, read: list[Span], written: list[Span], caller: Caller, work: Any) -> None:
    pending = work.spans
    if pending is None:
        pending = work.spans = spans(work.inputs), spans(work.outputs)
    if _meet(written, pending[1]):
        own, does = "its result goes to", "writes"
    elif _meet(written, pending[0]):
        own, does = "its result goes to", "reads"
    elif _meet(read, pending[1]):
        own, does = "its input lies in", "writes"
    else:
        return
    call, where = plan.call._replace(site=caller.site()), f"rank {plan.rank} of {plan.size}"
    warn_at(caller, f"{call}: {own} memory that {work.call} {does}, which was not waited for yet ({where})")


def _meet(one: list[Span], other: list[Span]) -> bool:
    return any(start < stop and begin < end for start, end in one for begin, stop in other)


def version_of(inputs: Parts | None) -> int | None:
    """What tells whether a tensor, or another one of its storage, was changed since; None where nothing does."""
    return inputs._version if type(inputs) is Tensor and not inputs.is_inference() else None


def tell_change(work: Any) -> None:
    """The wait warns that what the call reads was changed since the post; where it may have been a neighbour, not.

    Of nothing, nothing can be changed, and all that is empty seems to lie at the same place.
    """
    work.version = None
    if not work.inputs.nbytes or work.inputs.untyped_storage().nbytes() != work.inputs.nbytes:
        return
    text = f"{work.call}: its input was changed before the wait, so what the ranks get of it is left to chance"
    work.warn(partial(warn_at, work.caller, f"{text} (rank {work.plan.rank} of {work.plan.size})"))
