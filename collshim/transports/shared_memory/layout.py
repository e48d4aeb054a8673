"""The layout of a segment, and the numbers that both forms of the core share; the core's C files define the same."""

from __future__ import annotations

PAGE = 4096
CONTROL_BYTES = 640
COUNTER_BYTES = 128
STATE_OFFSET = 4 * COUNTER_BYTES
SLOT_HEAD = 64

SLEEPER_BYTES = 128
PIPE_HEAD = 256
RECORD_HEAD = 64
UNIT = 64
"""Records in a pipe begin at multiples of this number of bytes, as does their data."""

POSTED, RELEASED, STAGE, BLOCK = range(4)
"""A rank's counters: calls posted, calls whose slots it has read, the first steps of transfers that have two, and the
steps of transfers in blocks."""

COUNTERS = 4

DONE, WAITING, ARRIVED, LENT, UNREADABLE = range(5)
"""The outcomes that ``finish`` returns.

- DONE: the result is complete.
- WAITING: a rank has not arrived.
- ARRIVED: all ranks have arrived, and the caller does the rest.
- LENT: the result is complete, but another rank might still read this rank's memory, or has given up a call.
- UNREADABLE, plus a rank's number: that rank's memory cannot be read.
"""

NOTHING, REDUCED, REDUCED_PART, ALL_PARTS, FROM_ROOT, PART_OF_ROOT, PART_OF_EACH = range(7)
"""The result that a rank receives: nothing, the reduction of all ranks' tensors, its part of that, every rank's tensor,
the root's tensor, its part of the root's, or its part of each rank's."""

OPERATIONS = ("sum", "prod", "min", "max", "band", "bor", "bxor", "avg")
"""The reduce operations of the core, in the order of their numbers there."""

NUMBERS = {
    "float32": "f",
    "float64": "d",
    "float16": "e",
    "bfloat16": "E",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "l",
    "uint64": "L",
}
"""The dtypes that the core reduces, and their codes there."""

ALIVE, ENDED, CLOSED = range(3)
"""A rank's state: alive, ended by a call that it gave up, or closed. In the last two states it posts no more calls."""

INLINE, ABSENT, FAR, BLOCKS = range(4)
"""The kind of a slot's data: the rank's input; nothing, since the input is too large; addresses of a larger input; the
length of a larger input that travels in blocks."""

PUSHED, ASLEEP, FULL = range(3)
"""The outcome of writing to a pipe: the record was written; it was written, and the reader must be woken; or there was
no room, to which the message's turn is added."""


def reduction(operation: str, dtype: str) -> int:
    """Return the core's number of a reduction; 0 if the core lacks it."""
    code = NUMBERS.get(dtype)
    return 0 if code is None or operation not in OPERATIONS else OPERATIONS.index(operation) * 256 + ord(code)


def slots_start(size: int) -> int:
    """Return the offset in bytes of the slots of a group of ``size``."""
    return PAGE + -(-size * CONTROL_BYTES // PAGE) * PAGE


def segment_bytes(size: int, slots: int, header_bytes: int, data_bytes: int) -> int:
    """Return the length of a segment in bytes."""
    return slots_start(size) + size * slots * (SLOT_HEAD + header_bytes + data_bytes)


def blocks_bytes(size: int, room: int) -> int:
    """Return the bytes of a group's buffers for blocks, two of this room for each rank."""
    return 2 * size * room


def pipes_start(size: int) -> int:
    """Return the offset in bytes of the first pipe of a group of ``size`` from the start of the pipes' memory."""
    return -(-size * SLEEPER_BYTES // PAGE) * PAGE


def pipes_bytes(size: int, room: int) -> int:
    """Return the bytes of a group's pipes, each with this room."""
    return pipes_start(size) + size * size * (PIPE_HEAD + room)
