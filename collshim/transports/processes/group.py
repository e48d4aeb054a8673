"""One process's end of a group, as its collectives, its messages and the progress thread see it."""

from __future__ import annotations

from typing import Any, Protocol

from collshim.errors import CommunicationError
from collshim.transports.processes.stalls import StallInspector
from collshim.work import DeferredErrors


class Group(Protocol):
    """What a ``ProcessTransport`` is to what travels in it; see there."""

    rank: int
    size: int
    ranks: tuple[int, ...]
    key: str
    checks: bool
    deferred: DeferredErrors
    stalls: StallInspector
    data_group: Any
    latest: Any

    def refuse_if_broken(self) -> None:
        """Raise where an earlier failure ended the group."""

    def agree_up_to(self, exchange: Any, limit: float | None) -> None:
        """Let every call up to this one agree and start, in the order in which they were posted."""

    def advance(self) -> bool:
        """Let what can start do so, without waiting; whether there is more to come."""
        ...

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End the group on all ranks; the failure to raise."""
        ...
