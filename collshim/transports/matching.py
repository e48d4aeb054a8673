"""Match messages at their receiver with two ordered queues: posted receives and unexpected messages."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from collshim.calls.pending import times


class _HasCall(Protocol):
    """An object with a call, which includes its line if the ranks exchange lines."""

    @property
    def call(self) -> Any:
        """The call."""


R = TypeVar("R", bound=_HasCall)
M = TypeVar("M", bound=_HasCall)


class MessageQueues(Generic[R, M]):
    """One receiver's queues.

    Attributes:
        posted: receives whose message has not arrived.
        unexpected: messages that no receive has taken.
    """

    def __init__(self, fits: Callable[[R, M], bool]) -> None:
        """Make empty queues; ``fits`` returns whether a receive matches a message, by source and tag."""
        self.posted: list[R] = []
        self.unexpected: list[M] = []
        self._fits = fits

    def receive(self, request: R) -> M | None:
        """Return the oldest message that fits a receive; None if the receive has to wait."""
        for index, message in enumerate(self.unexpected):
            if self._fits(request, message):
                return self.unexpected.pop(index)
        self.posted.append(request)
        return None

    def deliver(self, message: M) -> R | None:
        """Return the oldest receive that takes a message; None if the message has to wait."""
        for index, request in enumerate(self.posted):
            if self._fits(request, message):
                return self.posted.pop(index)
        self.unexpected.append(message)
        return None

    def clear(self) -> None:
        """Remove everything from the queues."""
        self.posted.clear()
        self.unexpected.clear()

    def leaks(self, rank: int, source: Callable[[M], int]) -> list[str]:
        """Describe what is left when ``rank`` closes its end: messages never received, and receives never answered."""
        received = Counter(f"{message.call} of rank {source(message)}" for message in self.unexpected)
        answered = Counter(f"{request.call} on rank {rank}" for request in self.posted)
        never = [f"{text}{times(count)} was never received by rank {rank}" for text, count in received.items()]
        return never + [f"{text}{times(count)} was never answered" for text, count in answered.items()]


def never_closed(transports: Iterable[Any]) -> list[str]:
    """Describe the subgroups that a rank left open until the end of the world closed them."""
    made = sorted((transport.key, transport.made_at) for transport in transports if transport.made_at)
    return [f"group {key}, made at {site}, was never closed" for key, site in made]


def warn_of(leaks: Iterable[str], group: str) -> None:
    """Issue a ResourceWarning for each leak."""
    for leak in leaks:
        warnings.warn(f"{group} is closed: {leak}", ResourceWarning, stacklevel=3)
