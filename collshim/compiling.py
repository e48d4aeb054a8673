"""Makes ``torch.compile`` break its graph at calls of collshim, and skip collshim's own frames.

Dynamo would trace into them and fail: they use stores, sockets and threads. It decides which folders to skip when it is
first imported, which takes seconds; so collshim is added then, and a program that does not compile pays nothing.
"""

from __future__ import annotations

from typing import Any

from collshim.importing import when_imported


def leave_alone() -> None:
    """Register collshim with Dynamo, now or when it is imported."""
    when_imported("torch._dynamo.trace_rules", _skip)


def _skip(rules: Any) -> None:
    rules.add("collshim")
