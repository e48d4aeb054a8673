"""``group_start`` and ``group_end``, between which NCCL would collect calls (MegEngine 1.13.0)."""

from __future__ import annotations


def group_start() -> None:
    """Begin calls that belong together; each is carried out as it comes, since none of collshim's waits for another."""


def group_end() -> None:
    """End them."""
