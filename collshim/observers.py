"""Observers of the calls that a communicator posts: each sees a call before it starts and its work afterwards.

``PendingCalls`` observes if the ranks exchange the lines of their calls, ``NaNSearch`` and ``CallLog`` if the user asks
for them. If any observer but ``PendingCalls`` is active, every call is shown to the observers. Otherwise a call without
a ``Work``, which NCCL puts into the caller's stream, is not shown: it cannot be pending.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from collshim.arrays.nan import nan_in
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.calls.validation import error_text
from collshim.errors import ArgumentValueError
from collshim.layout import Parts
from collshim.log import LOG
from collshim.settings import Options
from collshim.settings import get as current_options
from collshim.transports import Transport, compares
from collshim.work import Work


class Observer(Protocol):
    """Sees each call that a communicator posts."""

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See a call that is about to start, and return the plan to start: ``plan``, or one that reports more.

        An exception refuses the call: this rank has then posted nothing.
        """
        ...

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See the work of a call that has started, in the group of that name."""
        ...


class NaNSearch:
    """Searches the input of each reduction for NaN, and adds the finding to the call, which the ranks compare.

    Raises:
        ArgumentValueError: the ranks do not compare their calls, so no other rank would report the NaN.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See ``Observer``."""
        if plan.call.reduce_op is None or inputs is None:
            return plan
        transport = self._transport
        if not compares(transport, inputs if isinstance(inputs, Tensor) else inputs[0]):
            raise ArgumentValueError(error_text(transport, "find_nan", "the check between ranks", "off", "on"))
        found = nan_in(inputs)
        if not found:
            return plan
        plan = Plan(plan.call._replace(nan=found), plan.device, plan.rank, plan.size)
        plan.carrier = transport.carrier(plan)
        return plan

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See ``Observer``."""


class CallLog:
    """Writes each call with its line to the log ``collshim``, at DEBUG.

    Args:
        posted_by: the rank and its communicator, as each line of the log begins.
    """

    def __init__(self, posted_by: str) -> None:
        self._posted_by = posted_by

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See ``Observer``."""
        LOG.log(logging.DEBUG, "%s: %s", self._posted_by, plan.call._replace(site=caller.site()))
        return plan

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See ``Observer``."""


MAKERS: list[Callable[[Transport], Observer | None]] = []
"""Make further observers, each of one communicator, of all communicators that are made from now on."""


class Observers:
    """The observers of one communicator, chosen by the options and the log's level when it is made.

    Args:
        transport: the communicator's.
        pending: the rank's pending calls, if the ranks exchange the lines of their calls.
        title: the rank and its communicator, if calls are logged; else "".

    Attributes:
        always: ``pending`` alone; no observer if it is None.
        by_default: the observers outside of any block of options.
        finds_nan: whether the search for NaN is among these.
        sees_all: whether an observer besides ``pending`` is active, so that every call must be shown.
    """

    __slots__ = ("_with_nan", "_without_nan", "always", "by_default", "finds_nan", "sees_all")

    def __init__(self, transport: Transport, pending: Observer | None, title: str) -> None:
        self.always: tuple[Observer, ...] = () if pending is None else (pending,)
        self.finds_nan = current_options().find_nan
        self._without_nan = (*self.always, CallLog(title)) if title else self.always
        more = [observer for make in MAKERS if (observer := make(transport)) is not None]
        if more:  # else it is `always` itself, by which calls are kept short
            self._without_nan = (*self._without_nan, *more)
        self._with_nan: tuple[Observer, ...] = (NaNSearch(transport), *self._without_nan)
        self._choose()

    def _choose(self) -> None:
        self.by_default = self._with_nan if self.finds_nan else self._without_nan
        self.sees_all = self.by_default is not self.always

    def add(self, observer: Observer) -> None:
        """Add an observer, which sees each call last."""
        self._without_nan, self._with_nan = (*self._without_nan, observer), (*self._with_nan, observer)
        self._choose()

    def in_block(self, block: Options) -> tuple[Observer, ...]:
        """Return the observers in a block of code with its own options."""
        return self._with_nan if block.find_nan else self._without_nan
