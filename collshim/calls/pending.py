"""A rank's calls that were posted and not yet waited for: checks for shared memory, changed inputs, and leaks."""

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
from collshim.calls.call import Call
from collshim.calls.plan import Plan
from collshim.calls.site import Caller, warn_at
from collshim.layout import Parts
from collshim.logs.files import RankLog
from collshim.work import Work

Entry: TypeAlias = "tuple[ref[Work[Any]], str, Plan, Caller]"

_COMPARED = 32
"""How many of the latest calls have their memory compared with a new call's."""


class PendingCalls:
    """A rank's pending calls, in all its groups; its threads may post and wait concurrently.

    It observes the calls of communicators whose ranks exchange the lines of their calls. Most calls are waited for
    before the next one is posted, so the latest call is kept separately, and becomes an entry only when the next call
    follows.

    Attributes:
        lock: held while the attributes below change; reentrant, since the garbage collector can close a group.
        latest: the last call that was posted, if it is pending: its work, its group's key, its plan, and its line.
        last: the last call, and its line if the ranks exchange them; None before the first. Its plan is not kept, since
            that would keep the call's group alive.
        entries: the pending calls before the latest, by number, with a weak reference to each work.
        log: keeps the rank's calls in a file; None if this was not requested.
    """

    __slots__ = ("_dropped", "_most", "_numbers", "entries", "last", "latest", "lock", "log")

    def __init__(self) -> None:
        self.log: RankLog | None = None
        self.lock = RLock()
        self.latest: tuple[Work[Any], str, Plan, Caller] | None = None
        self.last: tuple[Call, Caller | None] | None = None
        self.entries: dict[int, Entry] = {}
        self._numbers = count()
        self._dropped: dict[str, Counter[str]] = {}
        self._most = 2 * _COMPARED

    def last_call(self) -> str:
        """Return the last call that was posted, with its line; empty if there was none."""
        if self.last is None:
            return ""
        call, caller = self.last
        return str(call if caller is None else call._replace(site=caller.site()))

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See ``Observer``: warn if the call writes memory that a pending call uses, or reads memory that one writes.

        The result would depend on which finishes first. Calls on CUDA are ordered by their stream.
        """
        if self.latest is not None or self.entries:
            self._compare(plan, inputs, outputs, caller)
        return plan

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See ``Observer``: record the call as pending."""
        with self.lock:
            if self.latest is not None:  # from another thread
                self.enter_latest()
            self.latest = work, group, plan, caller

    def _compare(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> None:
        with self.lock:
            self.enter_latest()
            latest_entries = [*self.entries.values()][-_COMPARED:]
            is_any_dropped = any(work() is None for work, *_ in latest_entries)  # the core posts only without entries
            if is_any_dropped or len(self.entries) > self._most:
                self._forget_dropped()
                self._most = 2 * max(len(self.entries), _COMPARED)
        if plan.on_cpu:
            read, written = spans(inputs), spans(outputs)
            for entry in reversed(latest_entries):
                work = entry[0]()
                if work is not None and entry[2].on_cpu:
                    _warn_of_overlap(plan, read, written, caller, work)

    def enter_latest(self) -> None:
        """Move the latest call to the entries, unless it was waited for; the caller holds ``lock``."""
        latest, self.latest = self.latest, None
        if latest is not None:
            work, key, plan, caller = latest
            work.number = next(self._numbers)
            self.entries[work.number] = ref(work), key, plan, caller
            if work.is_freed:  # another thread has waited for it meanwhile
                self.entries.pop(work.number, None)

    def remove(self, work: Work[Any]) -> None:
        """Forget a work that was waited for, or that nothing will wait for."""
        with self.lock:
            if self.latest is not None and self.latest[0] is work:
                self.latest = None
            elif work.number is not None:
                self.entries.pop(work.number, None)

    def _forget_dropped(self) -> None:
        """Replace works that were garbage-collected without a wait by a count, for the warning about leaks."""
        for number, (work, key, plan, caller) in self.entries.copy().items():
            if work() is None and self.entries.pop(number, None) is not None:
                self._dropped.setdefault(key, Counter())[_text(plan, caller)] += 1

    def leaks(self, key: str, reported: Iterable[Work[Any]] = ()) -> list[str]:
        """Return the calls of a group that were not waited for, each once, except those already ``reported``."""
        for work in reported:
            work.free()
        with self.lock:
            self.enter_latest()
            self._forget_dropped()
            texts = self._dropped.pop(key, Counter())
            for number, (reference, group, plan, caller) in self.entries.copy().items():
                if group == key and self.entries.pop(number, None) is not None:
                    pending = reference()
                    if pending is None or not pending.is_awaited:  # the group's end interrupts a waiting thread
                        texts[_text(plan, caller)] += 1
        return [f"{text}{times(count)} was not waited for" for text, count in texts.items()]


def _text(plan: Plan, caller: Caller) -> str:
    return f"{plan.call._replace(site=caller.site())} on rank {plan.rank}"


def times(count: int) -> str:
    """Return " (N times)" if the count is more than one."""
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
    text = f"{call}: {own} memory that {work.call} {does}, and that call has not been waited for yet"
    warn_at(caller, f"{text} ({where})")


def _meet(one: list[Span], other: list[Span]) -> bool:
    return any(start < stop and begin < end for start, end in one for begin, stop in other)


def version_of(inputs: Parts | None) -> int | None:
    """Return torch's version counter, which changes with a tensor's storage; None if the tensor has none."""
    return inputs._version if type(inputs) is Tensor and not inputs.is_inference() else None


def tell_change(work: Any) -> None:
    """Make the wait warn that the input changed after the post, unless another part of its storage might have changed.

    An empty input cannot change, and all empty tensors appear to have the same address.
    """
    work.version = None
    if not work.inputs.nbytes or work.inputs.untyped_storage().nbytes() != work.inputs.nbytes:
        return
    text = f"{work.call}: its input was changed before the wait, so the ranks might receive the old or the new values"
    work.warn(partial(warn_at, work.caller, f"{text} (rank {work.plan.rank} of {work.plan.size})"))
