"""The output of the demo, for 100 columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from collshim import __version__
from collshim.demo.curves import TOLERANCE, Curves, fingerprint
from collshim.demo.example import Example, Sheet
from collshim.demo.training.dialects import DIALECTS, averaging_line
from collshim.demo.verdict import Judged, Verdict

WIDTH = 100


def console() -> Console:
    """Return standard output, at most ``WIDTH`` columns wide, in colour if it is a terminal."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # do not fail for an encoding without ticks
    found = Console(highlight=False)
    found.width = min(found.width, WIDTH) if found.is_terminal else WIDTH
    return found


def opening(ranks: int) -> RenderableType:
    """Return the introduction, which explains the output."""
    text = (
        f"collshim {__version__}: {ranks} ranks, processes of this machine, run the frameworks' documented examples. "
        "Each call is shown, followed by the structure that it returned (t: a tensor), and then for each rank its "
        "input and its result: [[1 2] [3 4]] is one tensor, [1 2] [3 4] a list of two. The tick compares the result "
        "with the documents; if a note says that a document errs, with the behaviour of the framework itself."
    )
    return Padding(Text(text), (1, 1), expand=False)


def documented(sheet: Sheet, verdicts: Sequence[Verdict]) -> RenderableType:
    """Return one framework's examples: the call, the returned structure, and the input and result of each rank."""
    examples = [Padding(_example(verdict), (0, 0, 1, 1)) for verdict in verdicts]
    return Group(_heading(sheet.framework, sheet.title), Text(f" {sheet.setting}\n", style="dim"), *examples)


def training(curves: Curves, picture: Path) -> RenderableType:
    """Return the five trainings: how each averages the gradients, and whether its curve equals the others."""
    title = f"{len(curves.single)} steps, {len(curves.by_rank)} ranks, one training in five dialects"
    text = (
        f"one process, same batches: loss from {curves.single[0]:.4f} to {curves.single[-1]:.4f}; "
        f"largest difference {max(map(curves.distance, curves.frameworks())):.1e}, allowed {TOLERANCE:.0e} "
    )
    one = Text(text).append(tick(curves.close()))
    parts: list[RenderableType] = [_dialects(curves), one, Text(f"picture: {picture}")]
    return Group(_heading("Training", title), Text(), *(Padding(part, (0, 0, 1, 1), expand=False) for part in parts))


def tick(good: bool) -> Text:
    """Return a tick or a cross."""
    return Text("✓", style="bold green") if good else Text("✗", style="bold red")


def _heading(name: str, text: str) -> RenderableType:
    return Rule(Text.assemble((name, "bold"), f"  {text} ", style="cyan"), align="left", style="cyan")


def _example(verdict: Verdict) -> RenderableType:
    example = verdict.example
    note = [Padding(Text(f"note: {verdict.note}", style="yellow"), (0, 2), expand=False)] if verdict.note else []
    return Group(*_code_lines(example, _structures(verdict.results)), _rows(verdict.results), *note)


def _code_lines(example: Example, structures: str) -> list[Text]:
    """Return the code that was run, with the returned structure after its line."""
    name = [] if example.name == example.call else [Text(f"# {example.name}", style="dim")]
    call = _code(example.call).append(f"  →  {structures}", style="cyan")
    return [*name, call, *([_code(example.after)] if example.after else [])]


def _code(text: str) -> Text:
    code = Syntax("", "python", theme="ansi_dark").highlight(text)
    code.rstrip()
    code.stylize("bold")
    code.no_wrap = False
    return code


def _structures(results: Sequence[Judged]) -> str:
    """Return the returned structure; once if it is the same everywhere."""
    structures = {result.row.back for result in results}
    if len(structures) == 1:
        return structures.pop()
    return ", ".join(f"{result.row.back} on {result.who}" for result in results)


def _rows(results: Sequence[Judged]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
    table.add_column(min_width=9, no_wrap=True, style="dim")
    table.add_column(ratio=35, overflow="fold")
    table.add_column(min_width=1, no_wrap=True, style="cyan")
    table.add_column(ratio=45, overflow="fold")
    table.add_column(min_width=1, no_wrap=True)
    for result in results:
        row = result.row
        table.add_row(result.who, Text(row.given), "→", Text(row.held), tick(not result.wanted))
        if result.wanted:
            table.add_row("", "", "", Text(f"should be {result.wanted}", style="red"), "")
    return table


def _dialects(curves: Curves) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(min_width=10, no_wrap=True)
    table.add_column("how the gradients are averaged", overflow="fold")
    for name in ("last loss", "bits of all", ""):
        table.add_column(name, min_width=max(1, len(name)), no_wrap=True)
    for name in curves.frameworks():
        losses = curves.of(name)
        line = _code(averaging_line(DIALECTS[name]))
        table.add_row(name, line, f"{losses[-1]:.4f}", fingerprint(losses), tick(curves.equal(name)))
    return table
