"""``group_start`` and ``group_end``, between which NCCL would batch calls (MegEngine 1.13.0)."""

from __future__ import annotations


def group_start() -> None:
    """Do nothing: each call runs immediately, because no call of collshim waits for a later call."""


def group_end() -> None:
    """Do nothing; see ``group_start``."""
