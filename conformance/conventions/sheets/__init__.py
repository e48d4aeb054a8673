"""What is told by hand on each page of ``docs/differences/``: one module per page."""

from __future__ import annotations

from importlib import import_module

from collshim.conformance.conventions.sheets.sheet import Sheet

PAGES = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "all_to_all",
    "send_recv",
    "objects",
    "barrier",
)


def sheets() -> list[Sheet]:
    """Every page's, in the order in which they are listed."""
    return [import_module(f"{__name__}.{name}").SHEET for name in PAGES]
