"""The layout of a segment, and the numbers that both forms of the ring share; as in ``slots.h`` and ``_core.c``."""

from __future__ import annotations

PAGE = 4096
CONTROL_BYTES = 512
COUNTER_BYTES = 128
STATE_OFFSET = 3 * COUNTER_BYTES
SLOT_HEAD = 64

POSTED, RELEASED, STAGE = range(3)
"""A rank's counters: calls posted, calls whose slots it has read, and steps of its transfers of larger data."""

COUNTERS = 3

DONE, WAITING, ARRIVED, LENT, UNREADABLE = range(5)
"""What ``finish`` returns: the result is there; a rank has not come; all came, and the caller does the rest; the result
is there, and another rank may still read this one's memory or has given up a call; the memory of a rank, whose number
is added, cannot be read."""

NOTHING, REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH = range(7)
"""What a rank gets: nothing, all ranks' sum, its part of the sum, every rank's tensor, the root's tensor, its part of
the root's, or its part of each rank's."""

ALIVE, ENDED, CLOSED = range(3)
"""A rank's state: it has given up a call, or has closed the group; it posts no more."""

INLINE, ABSENT, FAR = range(3)
"""What a slot's data is: the rank's input; nothing, since the input is too large; addresses of a larger input."""


def slots_start(size: int) -> int:
    """Return the offset in bytes of the slots of a group of ``size``."""
    return PAGE + -(-size * CONTROL_BYTES // PAGE) * PAGE


def segment_bytes(size: int, slots: int, header_bytes: int, data_bytes: int) -> int:
    """Return the length of a segment in bytes."""
    return slots_start(size) + size * slots * (SLOT_HEAD + header_bytes + data_bytes)
