"""Tables on a terminal, in colour if rich is installed."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.conformance.reporting.markdown import Row

_WIDTH = 120
"""The number of columns that the tables need; a narrower terminal wraps them."""

_STYLES = {"✓": "green", "✗": "red", "·": "dim"}


def print_table(titles: Row, rows: Sequence[Row]) -> None:
    """Print one table and an empty line; a row of one cell is a heading for those below it."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:  # rich is an extra
        _print_plainly(titles, rows)
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for title in titles:
        table.add_column(title, no_wrap=True)
    for row in rows:
        cells = [Text(cell, style=_STYLES.get(cell[:1], "")) for cell in row]
        if len(row) == 1:
            cells = [Text(row[0], style="bold cyan")]
        table.add_row(*cells)
    console = Console(highlight=False)
    console.width = max(console.width, _WIDTH)
    console.print(table, "")


def _print_plainly(titles: Row, rows: Sequence[Row]) -> None:
    full = [titles, *(row for row in rows if len(row) > 1)]
    widths = [max(len(row[place]) for row in full) for place in range(len(titles))]
    for row in [titles, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join(cells).rstrip())
    print()
