"""The receivers of messages in a process, by group, and messages of groups that do not exist here yet."""

from __future__ import annotations

import weakref
from hashlib import sha256

from collshim.transports.sockets.connection import Frame, Inbox

_KEPT = 1024
"""The number of ended groups that are remembered."""


class Inboxes:
    """The inboxes of one process; used with ``Connections.lock`` held."""

    def __init__(self) -> None:
        self._inboxes: dict[int, weakref.ref[Inbox]] = {}  # weak, so as not to keep a group that the program dropped
        self._early: dict[int, list[tuple[int, Frame]]] = {}
        self._closed_groups: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._inboxes)

    def add(self, group: int, inbox: Inbox) -> list[tuple[int, Frame]]:
        """Add the inbox of a group; return the messages that arrived before, with their sources."""
        self._inboxes[group] = weakref.ref(inbox)
        return self._early.pop(group, [])

    def forget(self, group: int) -> None:
        """Forget everything but the number of a group that has ended."""
        self._inboxes.pop(group, None)
        self._closed_groups[group] = None
        while len(self._closed_groups) > _KEPT:
            del self._closed_groups[next(iter(self._closed_groups))]

    def of(self, group: int) -> Inbox | None:
        """Return the inbox of a group, if it takes messages."""
        found = self._inboxes.get(group)
        return None if found is None else found()

    def wake(self, group: int) -> None:
        """Let a group look for messages in shared memory because another rank asks for it."""
        inbox = self.of(group)
        if inbox is not None:
            inbox.wake()

    def drain(self) -> None:
        """Let all groups take their messages in shared memory."""
        for inbox in [found() for found in self._inboxes.values()]:
            if inbox is not None:
                inbox.drain()

    def keep(self, source: int, frame: Frame) -> bool:
        """Keep a message of a group that does not exist here yet; return False if the group has ended."""
        if frame.group in self._inboxes or frame.group in self._closed_groups:
            return False
        self._early.setdefault(frame.group, []).append((source, frame._replace(data=memoryview(bytes(frame.data)))))
        return True


def number_of(key: str) -> int:
    """Return the number by which frames name the group of this name."""
    return int.from_bytes(sha256(key.encode()).digest()[:8], "little")
