"""Records whether this rank's program uses MegEngine's tensors, which decides the kind of results without input arrays.

It does if the rank joined its world through ``launcher`` or a ``Server``, or if it has made a MegEngine tensor.
Otherwise it passes torch tensors or NumPy arrays to the collectives; if it passes no array, the result is a torch
tensor.
"""

from __future__ import annotations

import threading


class _Native(threading.local):
    """The state of one rank; ranks that are threads have separate states."""

    def __init__(self) -> None:
        self.is_native = False


_native = _Native()


def become_native() -> None:
    """Record that this rank's program computes with MegEngine's tensors from now on."""
    _native.is_native = True


def is_native() -> bool:
    """Return whether this rank's program computes with MegEngine's tensors."""
    return _native.is_native
