"""Observes the calls of a communicator for the log: lines at DEBUG, and records in the rank's file."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from collshim.arrays import Arrays
from collshim.calls.call import Call, name_of
from collshim.calls.collective import MESSAGES
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import described
from collshim.layout import Parts, nbytes_of
from collshim.log import LOG
from collshim.logs.files import RankLog
from collshim.work import Delivery, Pending, Work


class LogEntry(NamedTuple):
    """One call in the log.

    Attributes:
        kind: "call" for a collective, "message" for a send or a recv, which have numbers of their own.
        number: the number in its communicator, from 1.
        text: the collective and its line.
        began: when it was posted, by ``time.monotonic``.
    """

    kind: str
    number: int
    text: str
    began: float


class CallLog:
    """Logs each call of one communicator as it is posted and as it ends.

    A call's duration is that from the post to the end of the first wait for it.

    Args:
        title: the rank and its communicator, with which each line begins; "" if no lines are wanted.
        log: takes the records; None if there is no file.
        group: the group's key; ``name``: its name in error texts; ``ranks``: its ranks in the world.
    """

    def __init__(self, title: str, log: RankLog | None, group: str, name: str, ranks: Sequence[int]) -> None:
        self._title, self._log, self._group = title, log, group
        self._lock = threading.Lock()
        self._numbers = {"call": 0, "message": 0}
        self._starting = dict[int, LogEntry]()
        if log is not None:
            log.write("group", group=group, name=name, ranks=list(ranks))

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See ``Observer``."""
        call, site = plan.call, caller.site()
        kind = "message" if call.collective in MESSAGES else "call"
        with self._lock:
            self._numbers[kind] = number = self._numbers[kind] + 1
        entry = LogEntry(kind, number, f"{call.name} at {site}", time.monotonic())
        self._starting[threading.get_ident()] = entry
        nbytes = _bytes_of(call, inputs, outputs)
        self._say(entry, "posted", f"{call._replace(site=site)}{'' if nbytes is None else f', {nbytes} bytes'}")
        self._write(entry, "posted", site=site, bytes=nbytes, **facts_of(call))
        return plan

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See ``Observer``."""
        entry = self._starting.pop(threading.get_ident())
        if work.was_over:
            self.end(entry, work)
        else:
            given = work.delivery
            work.delivery = Delivery(given.timeout, given.kind, _Ending(self, entry, given.pending), given.earlier)

    def refused(self, error: BaseException) -> None:
        """Log that the transport refused the call that this thread was about to start; the next has its number."""
        entry = self._starting.pop(threading.get_ident(), None)
        if entry is None:
            return
        with self._lock:
            if self._numbers[entry.kind] == entry.number:
                self._numbers[entry.kind] -= 1
        self._say(entry, "refused", described(error).partition("\n")[0])
        self._write(entry, "refused", error=described(error))

    def end(self, entry: LogEntry, work: Work[Any]) -> None:
        """Log that a call is over, or has failed."""
        seconds, failure = round(time.monotonic() - entry.began, 7), work.raises
        if failure is None:
            self._say(entry, f"done after {duration(seconds)}", entry.text)
            self._write(entry, "done", seconds=seconds, source=work.source)
        else:
            self._say(entry, f"failed after {duration(seconds)}", described(failure).partition("\n")[0])
            self._write(entry, "failed", seconds=seconds, error=described(failure))

    def free(self, entry: LogEntry) -> None:
        """Log that a call needs no wait: the program has found it over, or leaves it to complete."""
        self._say(entry, "needs no wait", entry.text)
        self._write(entry, "freed")

    def _say(self, entry: LogEntry, state: str, what: str) -> None:
        if self._title:
            LOG.log(logging.DEBUG, "%s: %s %d %s: %s", self._title, entry.kind, entry.number, state, what)

    def _write(self, entry: LogEntry, event: str, **facts: Any) -> None:
        if self._log is not None:
            known = {name: value for name, value in facts.items() if value is not None}
            self._log.write(event, group=self._group, **{entry.kind: entry.number}, **known)


class _Ending:
    """Takes the place of a work's ``Pending``, which it still tells, and logs how the call ends."""

    def __init__(self, log: CallLog, entry: LogEntry, pending: Pending | None) -> None:
        self._log, self._entry, self._pending = log, entry, pending
        self._is_over = False

    def remove(self, work: Work[Arrays]) -> None:
        """See ``Pending``."""
        if self._pending is not None:
            self._pending.remove(work)
        if self._is_over:
            return
        self._is_over = work.is_settled
        if self._is_over:
            self._log.end(self._entry, work)
        else:
            self._log.free(self._entry)


def duration(seconds: float) -> str:
    """Return a duration with its unit: ``0.213 ms``, ``1.25 s``."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _bytes_of(call: Call, inputs: Parts | None, outputs: Parts | None) -> int | None:
    """Return the size of what this rank gives or, if it gives nothing, of what it gets; None if not known yet."""
    if inputs is not None or outputs is not None:
        return nbytes_of(outputs if inputs is None else inputs)
    if call.collective.gives == call.collective.gets == "nothing":
        return 0
    if call.shape is None or call.dtype is None:
        return None
    return math.prod(call.shape) * call.dtype.itemsize


def facts_of(call: Call) -> dict[str, Any]:
    """Return a call's fields for a record: those that differ from their defaults."""
    defaults = Call._field_defaults
    fields = {name: value for name, value in call._asdict().items() if name in defaults and value != defaults[name]}
    dtype = {} if call.dtype is None else {"dtype": name_of(call.dtype)}
    return {"op": call.op, **fields, **dtype}
