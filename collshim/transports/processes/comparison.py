"""The exchange of the ranks' fingerprints, over gloo or in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.plan import Plan
from collshim.layout import Parts
from collshim.transports.processes.backend import is_over
from collshim.transports.processes.fingerprint import Fingerprint, call_from, decode
from collshim.transports.shared_memory.blocks import BlockTransfer
from collshim.transports.shared_memory.far import FarTransfer
from collshim.transports.shared_memory.group import Posted, SharedMemory
from collshim.transports.shared_memory.layout import ABSENT, BLOCKS, FAR


class Comparison(Protocol):
    """The exchange of one call's fingerprints."""

    def is_completed(self) -> bool:
        """Return whether all ranks' fingerprints have arrived."""
        ...

    def is_over(self, seconds: float) -> bool:
        """Return whether all fingerprints have arrived, after a wait of at most that many seconds.

        Raises:
            RuntimeError: they cannot arrive.
        """
        ...

    def read(self) -> list[Fingerprint]:
        """Return the fingerprints in rank order.

        Raises:
            ValueError, struct.error: a rank's fingerprint does not belong to this group.
        """
        ...


class GlooComparison:
    """Fingerprints that gloo gathers.

    Args:
        work: torch's work; ``gathered``: its output.
        number: how many were exchanged before; ``key`` signs them; ``rank`` is this rank.
    """

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


class SharedComparison(Posted):
    """Fingerprints in shared memory. They are not signed: no other process can write them.

    Attributes:
        headers: after ``read``, the encoded calls in rank order, if the compiled core can compare them; else None.
        is_far: after ``read``, whether the data is larger than a slot, and a transfer moves it.
        is_in_blocks: after ``read``, whether it moves in blocks.
    """

    __slots__ = ("headers", "is_far", "is_in_blocks")

    def __init__(self, shared: SharedMemory, header: bytes, data: Parts | None, number: int | None = None) -> None:
        self.headers: tuple[bytes, ...] | None = None
        self.is_far = self.is_in_blocks = False
        super().__init__(shared, header, data, number)

    def read(self) -> list[Fingerprint]:
        """See ``Comparison``; the data is valid until ``release``."""
        slots = self.slots()
        kinds = [slot.kind for slot in slots]
        self.is_in_blocks = BLOCKS in kinds
        self.is_far = (FAR in kinds or self.is_in_blocks) and ABSENT not in kinds
        if self.shared.has_core:
            self.headers = tuple(slot.header for slot in slots)
        return [Fingerprint(call_from(slot.header), slot.data, slot.posted) for slot in slots]

    def transfer(
        self, plan: Plan, calls: Sequence[Call], dtype: torch.dtype | None, inputs: Parts | None, outputs: Parts | None
    ) -> FarTransfer | BlockTransfer:
        """Return the transfer of the data whose addresses or lengths the ranks posted."""
        return (BlockTransfer if self.is_in_blocks else FarTransfer)(
            self.shared, self.number or 0, plan, calls, dtype or torch.uint8, inputs, outputs
        )
