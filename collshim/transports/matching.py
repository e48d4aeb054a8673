"""Matching of messages at their receiver: the posted-receive queue and the unexpected-message queue, each in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")
M = TypeVar("M")


class MessageQueues(Generic[R, M]):
    """One receiver's queues.

    Attributes:
        posted: receives whose message has not come.
        unexpected: messages that no receive has taken.
    """

    def __init__(self, fits: Callable[[R, M], bool]) -> None:
        """``fits`` says whether a receive takes a message: by its source and its tag."""
        self.posted: list[R] = []
        self.unexpected: list[M] = []
        self._fits = fits

    def receive(self, request: R) -> M | None:
        """The oldest message that fits a receive; None where the receive has to wait for it."""
        for index, message in enumerate(self.unexpected):
            if self._fits(request, message):
                return self.unexpected.pop(index)
        self.posted.append(request)
        return None

    def deliver(self, message: M) -> R | None:
        """The oldest receive that takes a message; None where the message has to wait for one."""
        for index, request in enumerate(self.posted):
            if self._fits(request, message):
                return self.posted.pop(index)
        self.unexpected.append(message)
        return None

    def clear(self) -> None:
        """Forget what waits here."""
        self.posted.clear()
        self.unexpected.clear()
