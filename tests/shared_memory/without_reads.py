"""Run pytest, and all processes that it starts, so that none of them may read or write another one's memory.

``python -m tests.shared_memory.without_reads`` takes pytest's arguments. The system refuses ``process_vm_readv``, as
some containers do, through a filter of system calls (seccomp), which every child inherits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {"x86_64": (310, 311), "aarch64": (270, 271)}
"""The numbers of ``process_vm_readv`` and ``process_vm_writev``, by the kind of processor."""

_NO_NEW_PRIVILEGES, _SET_FILTER, _MODE_FILTER = 38, 22, 2
_LOAD, _IS_EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def forbid_reads() -> None:
    """Forbid this process and its children to read or write another process's memory, for good.

    Raises:
        OSError: the system has no such filters.
    """
    read, write = NUMBERS[platform.machine()]
    steps = (_LOAD, 0, 0, 0), (_IS_EQUAL, 1, 0, read), (_IS_EQUAL, 0, 1, write), (_RETURN, 0, 0, _REFUSE)
    packed = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *step) for step in (*steps, (_RETURN, 0, 0, _ALLOW)))
    )
    program = _Program(len(steps) + 1, ctypes.addressof(packed))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(_SET_FILTER, _MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    forbid_reads()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
