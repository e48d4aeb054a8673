"""The tables that the demo prints, for 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from collshim.demo.example import Sheet
from collshim.demo.verdict import Judged, Verdict

WIDTH = 100

_COLUMNS = (("", 9), ("went in", 30), ("came back", 21), ("where the result is", 33))


def console() -> Console:
    """Standard output, at most ``WIDTH`` columns wide; colours and lines where it is a terminal."""
    found = Console(highlight=False)
    width = min(found.width, WIDTH) if found.is_terminal else WIDTH
    return Console(highlight=False, width=width)


def documented(sheet: Sheet, verdicts: Sequence[Verdict]) -> RenderableType:
    """One framework's examples: the call, and for each rank what it gave and got."""
    heading = Rule(Text.assemble((sheet.framework, "bold"), f"  {sheet.title}"), align="left", style="cyan")
    return Group(heading, Text(f"{sheet.setting}\n", style="dim"), *map(_example, verdicts))


def _example(verdict: Verdict) -> RenderableType:
    parts: list[RenderableType] = [_code(verdict.example.call), _rows(verdict.results)]
    if verdict.note:
        parts.append(Padding(Text(f"note: {verdict.note}", style="yellow"), (0, 2)))
    return Padding(Group(*parts), (0, 0, 1, 0))


def _code(call: str) -> RenderableType:
    code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(call)
    code.rstrip()
    return Padding(code, (0, 1))


def _rows(results: Sequence[Judged]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True, header_style="dim", expand=False)
    for heading, width in _COLUMNS:
        table.add_column(heading, width=width, overflow="fold")
    table.add_column("", width=1)
    for result in results:
        row = result.row
        table.add_row(Text(result.who, style="dim"), Text(row.given), Text(row.back), Text(row.held), tick(not result.wanted))
        if result.wanted:
            table.add_row("", "", Text("should be", style="red"), Text(result.wanted, style="red"))
    return table


def tick(good: bool) -> Text:
    """A tick or a cross."""
    return Text("✓", style="bold green") if good else Text("✗", style="bold red")
