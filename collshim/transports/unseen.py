"""Calls whose failure nobody has heard of yet: told by the wait of the next call.

Not by its post, for when a rank hears of a failure depends on when the others came: a post that raised would take no
place in the order of calls on this rank, though it had on the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from torch import Tensor

from collshim.errors import CollshimError, CommunicationError
from collshim.transports import Posted
from collshim.work import EarlierError


class Failing(Posted, Protocol):
    """A posted call that may have failed already."""

    def failed(self) -> bool:
        """Whether it has."""
        ...

    def own_failure(self) -> CollshimError:
        """What this rank is to raise: an exception of its own."""
        ...


F = TypeVar("F", bound=Failing)


class Unseen(list[F]):
    """A rank's posted calls that nobody has waited for, as far as they can still fail."""

    def seen(self, call: F) -> None:
        """The rank has waited for this one: its failure need not be raised again."""
        if call in self:
            self.remove(call)

    def failed(self) -> list[F]:
        """Those that have failed already."""
        return [call for call in self if call.failed()] if self else []

    def told(self, earlier: Sequence[F]) -> CollshimError | None:
        """The first of these failures that nobody has heard of meanwhile; none of them will be raised again."""
        untold = [call for call in earlier if call in self]
        for call in untold:
            self.remove(call)
        return untold[0].own_failure() if untold else None


class Behind:
    """A call posted after others that had failed."""

    def __init__(self, posted: Posted, unseen: Unseen[Any], earlier: Sequence[Any]) -> None:
        self._posted = posted
        self._unseen = unseen
        self._earlier = earlier
        self.token: Tensor | None = None

    @property
    def joint(self) -> bool:
        """See ``Posted``."""
        return self._posted.joint

    @property
    def source(self) -> int | None:
        """See ``Pending``."""
        return self._posted.source

    def done(self) -> bool:
        """See ``Pending``."""
        return self._posted.done()

    def wait(self, timeout: float | None) -> Any:
        """The outputs, or ``EarlierError``; where this call failed itself, the earlier failure is its cause."""
        try:
            found = self._posted.wait(timeout)
        except CommunicationError as failure:
            failure.__cause__ = failure.__cause__ or self._unseen.told(self._earlier)
            raise
        earlier = self._unseen.told(self._earlier)
        if earlier is not None:
            raise EarlierError(earlier)
        return found
