"""The exchange of the ranks' fingerprints, over gloo or in shared memory, while it is under way."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from collshim.transports.processes.backend import is_over
from collshim.transports.processes.fingerprint import Fingerprint, call_from, decode
from collshim.transports.shared_memory.group import Posted, SharedMemory


class Comparison(Protocol):
    """The exchange of one call's fingerprints.

    Attributes:
        headers: the encoded calls in rank order, after ``read``, if they travel in shared memory; else None.
        is_in_core: whether the compiled core can compare and compute.
    """

    headers: tuple[bytes, ...] | None
    is_in_core: bool

    def is_completed(self) -> bool:
        """Return whether all ranks' fingerprints have arrived."""
        ...

    def is_over(self, seconds: float) -> bool:
        """Return whether they have, after at most that many seconds.

        Raises:
            RuntimeError: they cannot arrive.
        """
        ...

    def read(self) -> list[Fingerprint]:
        """Return them in rank order; their data is valid until ``release``.

        Raises:
            ValueError, struct.error: a rank's fingerprint is none of this group's.
        """
        ...

    def release(self) -> None:
        """Report that this rank has read the data."""


class GlooComparison:
    """Fingerprints that gloo gathers.

    Args:
        work: torch's work; ``gathered``: its output.
        number: how many were exchanged before; ``key`` signs them; ``rank`` is this rank.
    """

    headers = None
    is_in_core = False

    def __init__(self, work: Any, gathered: Tensor, number: int, key: bytes, rank: int) -> None:
        self._work, self._gathered, self._number, self._key, self._rank = work, gathered, number, key, rank

    def is_completed(self) -> bool:
        """See ``Comparison``."""
        return bool(self._work.is_completed())

    def is_over(self, seconds: float) -> bool:
        """See ``Comparison``."""
        return is_over(self._work, seconds)

    def read(self) -> list[Fingerprint]:
        """See ``Comparison``."""
        return decode(self._gathered, self._key, self._number, self._rank)

    def release(self) -> None:
        """See ``Comparison``; here the data is this rank's own copy."""


class SharedComparison(Posted):
    """Fingerprints in shared memory. They are not signed: no other process can write them."""

    __slots__ = ("headers", "is_in_core")

    def __init__(self, shared: SharedMemory, header: bytes, data: Tensor | None, number: int | None = None) -> None:
        self.headers: tuple[bytes, ...] | None = None
        self.is_in_core = shared.has_core
        super().__init__(shared, header, data, number)

    def read(self) -> list[Fingerprint]:
        """See ``Comparison``."""
        slots = self.slots()
        self.headers = tuple(header for header, _, _ in slots)
        return [Fingerprint(call_from(header), data, posted) for header, data, posted in slots]
