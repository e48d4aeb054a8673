"""Observers of the calls that a communicator posts: each sees a call before it starts and its work afterwards.

``PendingCalls`` observes if the ranks exchange the lines of their calls; ``Posting`` shows it each call that has a
``Work`` of its own. ``NaNSearch`` and ``CallLog`` observe if the user asks for them. If any of the others is active,
every call is shown to them before ``PendingCalls`` sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from torch import Tensor
from torch.autograd import profiler

from collshim.arrays.nan import nan_in
from collshim.calls.plan import Plan
from collshim.calls.site import Caller, caller
from collshim.calls.validation import error_text
from collshim.errors import ArgumentValueError
from collshim.layout import Parts
from collshim.log import LOG
from collshim.logs.observer import CallLog
from collshim.profiling import in_range
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


MAKERS: list[Callable[[Transport], Observer | None]] = []
"""Make further observers, each of one communicator, of all communicators that are made from now on."""


class Observers:
    """The observers of one communicator besides ``PendingCalls``, chosen by the options and the log when it is made.

    Args:
        transport: the communicator's; ``ranks``, ``name``: as those of the communicator.

    Attributes:
        by_default: the observers outside of any block of options.
        finds_nan: whether the search for NaN is among these.
    """

    __slots__ = ("_log", "_others", "_search", "by_default", "finds_nan")

    def __init__(self, transport: Transport, ranks: Sequence[int], name: str) -> None:
        self.finds_nan = current_options().find_nan
        self._search = NaNSearch(transport)
        self._others: tuple[Observer, ...] = ()
        self._log: tuple[CallLog, ...] = ()  # last, since the others may refuse the call
        log, shows = transport.pending.log, LOG.isEnabledFor(logging.DEBUG)
        if log is not None or shows:
            title = f"rank {transport.rank} of {transport.size} in {name}" if shows else ""
            self._log = (CallLog(title, log, transport.key, name, transport.ranks),)
        self.by_default = self._with(self.finds_nan)
        for make in MAKERS:
            if (observer := make(transport)) is not None:
                self.add(observer)

    def _with(self, finds_nan: bool) -> tuple[Observer, ...]:
        return (*((self._search,) if finds_nan else ()), *self._others, *self._log)

    def add(self, observer: Observer) -> None:
        """Add an observer, which sees each call after those added before."""
        self._others = (*self._others, observer)
        self.by_default = self._with(self.finds_nan)

    def start(
        self,
        start: Callable[..., Work[Any]],
        plan: Plan,
        inputs: Parts | None,
        outputs: Parts | None,
        group: str,
        block: Options | None,
        waits: bool,
    ) -> Work[Any]:
        """Start a call that the observers see, and which is a range of torch's profiler if one is active.

        Args:
            start: starts it, given the plan, the inputs and outputs, and ``waits``.
            block: the options of a block of code, if any.
            waits: see ``Posting.repeat``; an observer needs a work that it can follow, so the call is not in line.
        """
        observers = self.by_default if block is None else self._with(block.find_nan)
        site = caller()
        for observer in observers:
            plan = observer.before(plan, inputs, outputs, site)
        starts = partial(start, plan, inputs, outputs, waits=waits and not observers)
        try:
            work = in_range(f"collshim::{plan.call.name}", starts) if profiler._is_profiler_enabled else starts()
        except BaseException as error:
            for log in self._log:
                log.refused(error)
            raise
        for observer in observers:
            observer.after(work, plan, site, group)
        return work
