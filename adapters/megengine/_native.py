"""Whether this rank's program computes with MegEngine's tensors, for results whose kind no input array determines.

It does if ``launcher`` or a ``Server`` brought the rank into its world, or if it has made such a tensor. Otherwise it
passes torch tensors, or NumPy arrays, to the collectives, and gets torch tensors if it passes no array.
"""

from __future__ import annotations

import threading


class _Native(threading.local):
    """The state of each rank, also of ranks that are threads."""

    def __init__(self) -> None:
        self.is_native = False


_native = _Native()


def become_native() -> None:
    """Record that this rank's program computes with MegEngine's tensors from now on."""
    _native.is_native = True


def is_native() -> bool:
    """Return whether this rank's program computes with MegEngine's tensors."""
    return _native.is_native
