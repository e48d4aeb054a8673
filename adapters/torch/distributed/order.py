"""The order of a group's collectives: once one is complete on a rank, so are those that the rank posted before it.

Gloo and NCCL complete the calls of a group in the order of posting, and programs rely on it: they post many with
``async_op=True``, and wait for the last one or for a barrier. The engine's works are complete only once they are waited
for, so a wait here waits for the earlier ones first. Sends and receives have no place in this order, as in torch.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Protocol

from collshim.torch.distributed.completions import Completions


class Ordered(Protocol):
    """A collective's work, as ``Order`` sees it."""

    number: int

    def is_completed(self) -> bool:
        """Check whether ``settle`` would return at once."""
        ...

    def settle(self, limit: float | None) -> Exception | None:
        """Wait for at most ``limit`` seconds, None for no limit; return the call's failure, if it failed."""
        ...


class Order(deque[Ordered]):
    """A group's collectives whose works have not been waited for, or whose failure nobody has seen.

    It is false if there are none, so that a call that is waited for at once need not look further. Threads that wait
    for different works may drop each other's.

    Attributes:
        completions: complete the calls that have futures.
    """

    def __init__(self) -> None:
        super().__init__()
        self.completions = Completions()
        self._posted = 0

    def add(self, work: Ordered) -> None:
        """Add the work of the call that was posted last; drop those that are complete by now."""
        with suppress(IndexError):
            while (first := self[0]).is_completed() and first.settle(None) is None:
                self.drop(first)
        self._posted += 1
        work.number = self._posted
        self.append(work)

    def is_first(self, work: Ordered) -> bool:
        """Check whether no work is waited for before this one."""
        with suppress(IndexError):
            return self[0].number >= work.number
        return True

    def settle(self, limit: float | None) -> Exception | None:
        """Wait for all works that are here now; return the first failure."""
        return self.settle_before(self._posted + 1, limit)

    def settle_before(self, number: int, limit: float | None) -> Exception | None:
        """Wait for the works that were added before the one with this number; return the first failure."""
        failure: Exception | None = None
        with suppress(IndexError):
            while (first := self[0]).number < number:
                own = first.settle(limit)
                failure = failure or own
                self.drop(first)
        return failure

    def drop(self, work: Ordered) -> None:
        """Forget a work that somebody has waited for; another thread may have done so already."""
        with suppress(ValueError):
            self.remove(work)
