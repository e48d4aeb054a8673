"""The memory that the ranks of a group share: made by one rank and mapped by all, without a name.

It is a file in memory without a name, which the other ranks open through ``/proc``. So nothing is left behind, however
the processes end, and ``/dev/shm`` and its size do not matter. Only processes of the same user can open it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import weakref
from typing import Any, NamedTuple

TOKEN_BYTES = 32
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAGIC = b"collshim ring 1\n"


class Segment(NamedTuple):
    """A mapping of the memory in this process.

    Attributes:
        memory: the bytes; the mapping ends once nothing refers to them.
        address: where they are in this process.
    """

    memory: Any
    address: int

    def token(self) -> bytes:
        """Return the token at the start; empty if this is not the memory of a group."""
        if bytes(self.memory[: len(_MAGIC)]) != _MAGIC:
            return b""
        return bytes(self.memory[len(_MAGIC) : len(_MAGIC) + TOKEN_BYTES])


def _mapped(file: int, nbytes: int) -> Segment:
    """Map a file. Python's own ``mmap`` would keep a descriptor of it for as long as the mapping lives."""
    address = _libc.mmap(None, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, file, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    memory = (ctypes.c_ubyte * nbytes).from_address(address)
    weakref.finalize(memory, _libc.munmap, address, nbytes).atexit = False
    return Segment(memory, address)


def make(nbytes: int, token: bytes) -> tuple[int, Segment]:
    """Make the memory, which begins with ``token``; return its file descriptor, which the caller closes, and a mapping.

    Raises:
        OSError: the system does not allow it.
    """
    file = os.memfd_create("collshim", os.MFD_CLOEXEC)
    try:
        os.fchmod(file, 0o600)
        os.ftruncate(file, nbytes)
        segment = _mapped(file, nbytes)
    except OSError:
        os.close(file)
        raise
    start = _MAGIC + token
    segment.memory[: len(start)] = start
    return file, segment


def join(process: int, file: int, nbytes: int, token: bytes) -> Segment | None:
    """Map the memory that another process made; None if this process cannot see it, as on another host."""
    try:
        own = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        state = os.fstat(own)
        if not stat.S_ISREG(state.st_mode) or state.st_size != nbytes:
            return None
        segment = _mapped(own, nbytes)
    except OSError:
        return None
    finally:
        os.close(own)
    return segment if segment.token() == token else None
