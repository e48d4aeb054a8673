"""Observes the collectives that a step calls, in any framework."""

from __future__ import annotations

from typing import Any

from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.invariance.records import Event
from collshim.invariance.tracing import Trace
from collshim.layout import Parts
from collshim.transports import Transport
from collshim.work import Work


class CallTrace:
    """An ``Observer`` of one communicator that adds its calls to a trace."""

    def __init__(self, trace: Trace, transport: Transport) -> None:
        self._trace = trace
        self._ranks = tuple(transport.ranks)
        self._events: dict[int, tuple[Event, Any]] = {}

    def before(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller) -> Plan:
        """See ``Observer``."""
        if not self._trace.keeps or self._trace.is_paused:
            return plan
        call = plan.call
        name = call.name if call.reduce_op is None else f"{call.name}({call.reduce_op})"
        event = self._trace.called(name, outputs if inputs is None else inputs, self._ranks)
        self._events[id(plan)] = event, outputs
        return plan

    def after(self, work: Work[Any], plan: Plan, caller: Caller, group: str) -> None:
        """See ``Observer``."""
        if id(plan) in self._events:
            event, outputs = self._events.pop(id(plan))
            self._trace.started(event, work, outputs)
