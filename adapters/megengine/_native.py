"""Whether this rank's program computes with MegEngine's tensors, for results that no array says the kind of.

It does where ``launcher`` or a ``Server`` brought the rank into its world, and where it has made such a tensor. Else it
gives torch tensors, or NumPy arrays, to the collectives, and gets torch's where it gives none.
"""

from __future__ import annotations

import threading


class _Native(threading.local):
    """Each rank's own, also where ranks are threads."""

    def __init__(self) -> None:
        self.is_native = False


_native = _Native()


def become_native() -> None:
    """From now on this rank's program computes with MegEngine's tensors."""
    _native.is_native = True


def is_native() -> bool:
    """Whether it does."""
    return _native.is_native
