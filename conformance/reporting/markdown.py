"""Tables and lists in Markdown, each with the line break at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Row = Sequence[str]


def table(titles: Row, rows: Iterable[Row], *, aligned: bool = False) -> str:
    """Return a table; a row of one cell is a heading for those below it.

    Args:
        titles: the titles of the columns.
        rows: each with as many cells as there are titles, or one.
        aligned: whether the columns are aligned in the source too.
    """
    blanks = [""] * (len(titles) - 1)
    cells = [[*map(_cell, row)] if len(row) == len(titles) else [f"**{row[0]}**", *blanks] for row in rows]
    heads = [*map(_cell, titles)]
    widths = [max(len(row[column]) for row in (heads, *cells)) if aligned else 0 for column in range(len(titles))]
    lines = [heads, ["-" * width or "---" for width in widths], *cells]
    text = "".join(f"| {' | '.join(map(str.ljust, line, widths))} |\n" for line in lines)
    return text if aligned else text.replace("|  |", "| |")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def bullets(texts: Iterable[str]) -> str:
    """Return a list."""
    return "".join(f"- {text}\n" for text in texts)
