"""Deferred errors: failures of calls that were not waited for yet.

Such a failure is raised by the wait of the next call, not by its post: when a rank learns of a failure depends on when
the others called, so a post that raised would take no place in the order of calls here, though it had on other ranks.
"""

from __future__ import annotations

from typing import Protocol

from collshim.errors import CollshimError


class Failing(Protocol):
    """A call that has failed."""

    def own_failure(self) -> CollshimError:
        """What this rank is to raise: an exception of its own."""
        ...


class DeferredErrors(list[Failing]):
    """A rank's calls that failed before they were waited for."""

    def discard(self, call: Failing) -> None:
        """The rank has waited for this one: its failure need not be raised again."""
        if call in self:
            self.remove(call)

    def taken(self, calls: list[Failing]) -> CollshimError | None:
        """The first of these failures that has not been raised meanwhile; none of them will be raised again."""
        unheard = [call for call in calls if call in self]
        for call in unheard:
            self.remove(call)
        return unheard[0].own_failure() if unheard else None
