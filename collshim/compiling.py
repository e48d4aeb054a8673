"""``torch.compile`` breaks its graph at a call of collshim, and leaves collshim's own frames alone.

Dynamo would trace into them, and cannot: they use stores, sockets and threads. It reads which folders to skip when it
is first imported, which takes seconds; so they are added then, and a program that does not compile pays nothing.
"""

from __future__ import annotations

from typing import Any

from collshim.importing import when_imported


def leave_alone() -> None:
    """Tell Dynamo, now or when it is imported."""
    when_imported("torch._dynamo.trace_rules", _skip)


def _skip(rules: Any) -> None:
    rules.add("collshim")
