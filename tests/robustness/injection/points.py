"""Stop points: the steps of making a world or a group, of a message and of a collective, at which a rank may end."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

_TRANSPORTS = "collshim.transports"


class Point(NamedTuple):
    """A method or function at which a rank ends.

    Attributes:
        when: "before" it or "after" it.
        time: the number of the call at which it ends.
        is_locked: whether a lock is held there that all ranks need, in which no thread of a program stays.
    """

    module: str
    owner: str
    name: str
    when: str
    time: int = 1
    is_locked: bool = False

    def __str__(self) -> str:
        place = f"{self.owner or self.module.rpartition('.')[2]}.{self.name}"
        return f"{self.when} {place}{'' if self.time == 1 else f', time {self.time}'}"

    def holder(self) -> object:
        """Return the owner of the attribute."""
        module = import_module(self.module)
        return getattr(module, self.owner) if self.owner else module


def _around(module: str, owner: str, name: str, *times: int) -> list[Point]:
    module = f"{_TRANSPORTS}.{module}"
    return [Point(module, owner, name, when, time) for when in ("before", "after") for time in times or (1,)]


_GROUP = [
    *_around("processes.process_groups", "ProcessGroups", "meeting"),
    *_around("rendezvous.making", "Assembly", "gather"),
    *_around("shared_memory.meeting", "", "_reads_far"),
    *_around("rendezvous.making", "Sharing", "gather"),
    *_around("rendezvous.world", "ProcessWorld", "made"),
]
_WORLD = [
    Point("collshim.joining", "", "reach_store", "before"),
    Point("collshim.joining", "", "reach_store", "after"),
    *_around("rendezvous.world", "ProcessWorld", "agreed"),
    *_around("rendezvous.world", "ProcessWorld", "meet"),
]
_MESSAGE = [
    *_around("processes.outbox", "Outbox", "send"),
    *_around("sockets.connections", "Connections", "offer"),
    *_around("processes.messages", "Messages", "_read"),
    *_around("processes.messages", "Messages", "release"),
    *_around("processes.mailbox", "Mailbox", "push"),
    *_around("processes.mailbox", "Mailbox", "drain"),
    *_around("processes.messages", "Messages", "_deliver"),
    *_around("processes.request", "MessageRequest", "end"),
]
_COLLECTIVE = [
    *_around("processes.transport", "ProcessTransport", "start", 1, 2),
    *_around("processes.transport", "ProcessTransport", "_exchange_fingerprints"),
    *_around("processes.shared_exchange", "SharedExchange", "post"),
    *_around("processes.shared_exchange", "SharedExchange", "agree"),
    *_around("processes.exchange", "Exchange", "_receive"),
    *_around("processes.exchange", "Exchange", "_compute"),
    *_around("shared_memory.far", "FarTransfer", "step"),
    *_around("shared_memory.group", "SharedMemory", "release"),
]
_THREADS = "collshim.transports.threads.exchange"
_OF_THREADS = [
    Point(_THREADS, "Exchange", name, when)
    for name in ("run", "_take_shares", "_finish")
    for when in ("before", "after")
]
_OF_THREADS += [Point(_THREADS, "Exchange", "__init__", when, is_locked=True) for when in ("before", "after")]
_C10D = "torch.distributed.distributed_c10d"
_OF_TORCH = [Point(_C10D, "", "_new_process_group_helper", when) for when in ("before", "after")]

ONCE = "_connection"
"""Steps that happen only with the first message."""

POINTS: dict[tuple[str, str], list[Point]] = {
    ("world", "processes"): _WORLD + _GROUP,
    ("group", "processes"): _GROUP,
    ("message", "processes"): _MESSAGE,
    ("collective", "processes"): _COLLECTIVE,
    ("collective", "threads"): _OF_THREADS,
    ("world", "torch"): _OF_TORCH,
    ("group", "torch"): _OF_TORCH,
}
"""The stop points of each subject on each transport."""

SUBJECTS = {subject for subject, _ in POINTS}
