"""The order of a group's collectives: if one is complete on a rank, so are those that the rank posted before it.

Gloo and NCCL complete the calls of a group in the order of posting, and programs rely on it: they post many with
``async_op=True``, and wait for the last one or for a barrier. The engine's works are complete only after a wait, so a
wait here waits for the earlier works first. Sends and receives are not part of this order, as in torch.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from collshim.torch.distributed.completions import Completions


class Ordered(Protocol):
    """A collective's work, as ``Order`` sees it."""

    number: int

    def is_completed(self) -> bool:
        """Return whether ``settle`` would return at once."""
        ...

    def settle(self, limit: float | None) -> Exception | None:
        """Wait at most ``limit`` seconds, or without limit if it is None; return the call's failure, if it failed."""
        ...


class Order(deque[Ordered]):
    """A group's collectives whose works have not been waited for, or whose failure has not been raised yet.

    An empty order is false, so that a call that is waited for at once has nothing more to do. Threads that wait for
    different works may drop each other's works.

    Attributes:
        completions: complete the calls that have futures.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completions = Completions()
        self._posted = 0

    def add(self, work: Ordered) -> None:
        """Add the work of the call that was posted last; drop works that are complete by now."""
        while self and (first := self._first()) is not None and first.is_completed() and first.settle(None) is None:
            self.drop(first)
        self._posted += 1
        work.number = self._posted
        self.append(work)

    def _first(self) -> Ordered | None:
        try:
            return self[0]
        except IndexError:
            return None

    def is_first(self, work: Ordered) -> bool:
        """Return whether there is no work to wait for before this one."""
        first = self._first()
        return first is None or first.number >= work.number

    def settle(self, limit: float | None) -> Exception | None:
        """Wait for all works that are in the order now; return the first failure."""
        return self.settle_before(self._posted + 1, limit)

    def settle_before(self, number: int, limit: float | None) -> Exception | None:
        """Wait for the works that were added before the one with this number; return the first failure."""
        failure: Exception | None = None
        while (first := self._first()) is not None and first.number < number:
            own = first.settle(limit)
            failure = failure or own
            self.drop(first)
        return failure

    def drop(self, work: Ordered) -> None:
        """Forget a work that has been waited for."""
        try:
            self.remove(work)
        except ValueError:  # a different thread has forgotten it
            return
