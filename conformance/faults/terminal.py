"""The scorer's tables in colour, where rich is installed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from collshim.conformance.faults.report import Row

_WIDTH = 120
"""Columns that the tables need; a terminal that has fewer wraps them."""

_STYLES = {"✓": "green", "✗": "red", "·": "dim"}


def render(heads: Row, rows: Sequence[Row]) -> None:
    """Print one table; a row of one cell heads those below it."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for row in rows:
        cells = [Text(cell, style=_STYLES.get(cell[:1], "")) for cell in row]
        if len(row) == 1:
            cells = [Text(row[0], style="bold cyan")]
        table.add_row(*cells)
    console = Console(highlight=False)
    console.width = max(console.width, _WIDTH)
    console.print(table, "")
