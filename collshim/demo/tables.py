"""The tables that the demo prints, for 100 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from collshim.demo.example import Sheet
from collshim.demo.verdict import Judged, Verdict

WIDTH = 100


def console() -> Console:
    """Standard output, at most ``WIDTH`` columns wide; colours where it is a terminal."""
    found = Console(highlight=False)
    return Console(highlight=False, width=min(found.width, WIDTH) if found.is_terminal else WIDTH)


def heading(name: str, text: str) -> RenderableType:
    """A line with a name and what follows below it."""
    return Rule(Text.assemble((name, "bold"), f"  {text} ", style="cyan"), align="left", style="cyan")


def documented(sheet: Sheet, verdicts: Sequence[Verdict]) -> RenderableType:
    """One framework's examples: the call, the structure that came back, and for each rank what it gave and got."""
    examples = [Padding(_example(verdict), (0, 0, 1, 1)) for verdict in verdicts]
    return Group(heading(sheet.framework, sheet.title), Text(f" {sheet.setting}\n", style="dim"), *examples)


def _example(verdict: Verdict) -> RenderableType:
    example = verdict.example
    call = _code(example.call)
    call.append(f"  →  {_structures(verdict.results)}", style="cyan")
    after = [_code(example.after)] if example.after else []
    notes = [Text(f"note: {verdict.note}", style="yellow")] if verdict.note else []
    return Group(call, *after, _rows(verdict.results), *(Padding(note, (0, 2)) for note in notes))


def _code(text: str) -> Text:
    code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text)
    code.rstrip()
    return code


def _structures(results: Sequence[Judged]) -> str:
    """What came back, once where it is the same everywhere."""
    structures = {result.row.back for result in results}
    if len(structures) == 1:
        return structures.pop()
    return ", ".join(f"{result.row.back} on {result.who}" for result in results)


def _rows(results: Sequence[Judged]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(width=9, style="dim")
    table.add_column(width=35, overflow="fold")
    table.add_column(width=1, style="cyan")
    table.add_column(width=45, overflow="fold")
    table.add_column(width=1)
    for result in results:
        row = result.row
        table.add_row(result.who, Text(row.given), "→", Text(row.held), tick(not result.wanted))
        if result.wanted:
            table.add_row("", "", "", Text(f"should be {result.wanted}", style="red"), "")
    return table


def tick(good: bool) -> Text:
    """A tick or a cross."""
    return Text("✓", style="bold green") if good else Text("✗", style="bold red")
