"""Groups of rings over one mapping, each rank's compiled or in Python."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import addressof, c_char
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.transports.shared_memory import layout, ring, segment

compiled: ModuleType | None = None
with suppress(ImportError):
    compiled = import_module("collshim.transports.shared_memory._core")

FORMS = {
    "compiled": ("compiled", "compiled"),
    "python": ("python", "python"),
    "rank 0 compiled": ("compiled", "python"),
    "rank 0 in python": ("python", "compiled"),
}
"""The forms of rank 0 and of the other ranks."""

SLOTS, HEADER_ROOM, DATA_ROOM = 4, 64, 1024
TOKEN = bytes(range(segment.TOKEN_BYTES))
WRAP = 1 << 32


def missing(forms: Sequence[str]) -> str:
    """Return why these forms cannot run here; empty if they can."""
    if sys.platform != "linux":
        return "shared memory needs Linux"
    if "compiled" in forms and compiled is None:
        return "the core is not compiled"
    if "python" in forms and platform.machine() != "x86_64":
        return "the form in Python needs x86-64"
    return ""


class Slot(NamedTuple):
    """The content of a slot, with the data as bytes."""

    header: bytes
    kind: int
    data: bytes


class Group:
    """The rings of all ranks of a group, in one process or in processes that fork it.

    Args:
        forms: the forms of rank 0 and of the other ranks.
        start: the number of the first call.
        spins: how often a wait looks before it sleeps.
    """

    def __init__(self, forms: Sequence[str], size: int, *, start: int = 0, spins: int = 4, slots: int = SLOTS) -> None:
        nbytes = layout.segment_bytes(size, slots, HEADER_ROOM, DATA_ROOM)
        file, self.segment = segment.make(nbytes, TOKEN)
        os.close(file)
        self.size, self._shape = size, (slots, HEADER_ROOM, DATA_ROOM, spins)
        self.words = memoryview(self.segment.memory).cast("B").cast("I")
        for rank in range(size):
            self.set_counters(rank, start)
        self.forms = [forms[min(rank, 1)] for rank in range(size)]
        self.rings = [self.make_ring(rank) for rank in range(size)]

    def make_ring(self, rank: int) -> Any:
        """Make a ring of a rank that begins with the memory as it is now."""
        memory = self.segment.memory
        make = ring_class(self.forms[min(rank, self.size - 1)])
        return make(self.segment.address, len(memory), self.size, rank, *self._shape, memory)

    def set_counters(self, rank: int, value: int) -> None:
        """Set the calls that a rank has posted and released, as after that many calls."""
        for which in (layout.POSTED, layout.RELEASED):
            self.words[(layout.PAGE + rank * layout.CONTROL_BYTES + which * layout.COUNTER_BYTES) // 4] = value % WRAP

    def counters(self, which: int) -> list[int]:
        """Return a counter of all ranks."""
        return [self.rings[0].counter(which, rank) for rank in range(self.size)]

    def slot(self, number: int, rank: int, reader: int = 0) -> Slot:
        """Return the content of a rank's slot, as another rank reads it."""
        header, kind, offset, nbytes, _ = self.rings[reader].slot(number, rank)
        return Slot(header, kind, bytes(self.segment.memory[offset : offset + nbytes]))

    def post_all(self, header: bytes = b"", tensors: Sequence[Tensor] | None = None) -> int:
        """Post one call on every rank; return its number."""
        tensors = [torch.empty(0)] * self.size if tensors is None else tensors
        numbers: set[int] = {post(own, header, tensor) for own, tensor in zip(self.rings, tensors, strict=True)}
        (number,) = numbers
        assert number is not None
        return number

    def release_all(self, number: int) -> None:
        for own in self.rings:
            own.advance(layout.RELEASED, (number + 1) % WRAP)


def ring_class(form: str) -> Callable[..., Any]:
    return ring.Ring if form == "python" else compiled.Ring  # type: ignore[union-attr]


def post(own: Any, header: bytes, data: Tensor | bytes = b"", kind: int = layout.INLINE, is_alone: bool = False) -> Any:
    """Post a call on one rank; return its number, or None if there is no room."""
    if isinstance(data, Tensor):
        return own.post(header, data.data_ptr() if data.nbytes else 0, data.nbytes, kind, is_alone)
    held = bytearray(data) or bytearray(1)
    return own.post(header, addressof(c_char.from_buffer(held)), len(data), kind, is_alone)


def has_slept(process: int, seconds: float = 20.0) -> bool:
    """Wait until a process sleeps in the system; return whether it does."""
    limit, looks = time.monotonic() + seconds, 0
    while looks < 3 and time.monotonic() < limit:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        looks = looks + 1 if state == b"S" else 0
        time.sleep(0.005)
    return looks == 3
