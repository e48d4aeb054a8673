"""Restorations that wait for variables which do not exist yet.

``tf.train`` adds them here. A ``tf.Module`` that gets an attribute, and a new variable that is used for the first time,
let them restore what exists by then.
"""

from __future__ import annotations

import threading
from typing import Any

# Restorations with values that were not assigned to a variable yet; they have ``match`` and ``is_over``.
RESTORATIONS: list[Any] = []

# Ranks may be threads: none may restore a variable again that another has restored and its owner has changed.
_LOCK = threading.RLock()
_RUNNING: list[bool] = []  # not empty while the thread that holds the lock restores


def restore_new() -> None:
    """Restore variables that were created after their checkpoint was read."""
    with _LOCK:
        if _RUNNING:  # a restoration itself uses a new variable
            return
        _RUNNING.append(True)
        try:
            _restore_each()
        finally:
            _RUNNING.clear()


def _restore_each() -> None:
    for restoration in list(RESTORATIONS):
        if not restoration.is_over():
            restoration.match()
        if restoration.is_over():
            RESTORATIONS.remove(restoration)
