"""The verdict, the grid as lines of text that fill the terminal's width, and the text below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from shutil import get_terminal_size
from textwrap import wrap

from collshim.conformance.report.failures import FUNCTIONS, failures, number, sentence
from collshim.conformance.report.results import BEYOND, DEVIATION, FAIL, MISSING, OUTCOMES, PASS, Cell, Grid

MARKS = {PASS: "✓", DEVIATION: "≈", BEYOND: "○", MISSING: "–", FAIL: "✗"}
NOTHING = "·"  # a framework lacks the collective
WORDS = {
    PASS: "agrees",
    DEVIATION: "known deviation",
    BEYOND: "unsupported upstream: the real framework failed, collshim answers",
    MISSING: "every function is missing",
    FAIL: "differs",
}
_STYLES = {PASS: "green", DEVIATION: "yellow", BEYOND: "blue", MISSING: "dim", FAIL: "bold red"}
_BETWEEN = "  "
WIDTH = 100
_WIDEST = 120


def show(grid: Grid, what: str = FUNCTIONS) -> None:
    """Print the grid, as wide as the terminal, in colour if rich is installed."""
    width = min(get_terminal_size((WIDTH, 24)).columns, _WIDEST)
    text = "\n".join(lines(grid, width, what))
    try:
        from rich.console import Console
        from rich.text import Text
    except ModuleNotFoundError:  # rich is an extra
        print(text)
        return
    coloured = Text(text, no_wrap=True)
    for outcome, style in _STYLES.items():
        coloured.highlight_regex(re.escape(MARKS[outcome]), style)
    console = Console(highlight=False)
    console.print(coloured, soft_wrap=True)


def lines(grid: Grid, width: int = WIDTH, show: str = FUNCTIONS) -> Iterator[str]:
    """Yield the verdict, the grid, its legend, the missing functions, the failures, and the counts."""
    yield from wrap(sentence(grid), width)
    yield ""
    yield from table(grid, width)
    yield ""
    yield from legend(grid, width)
    yield from _missing_by_module(grid, width)
    if grid.failed or grid.stale:
        yield ""
        yield from failures(grid, width, show)
    yield ""
    yield counts(grid)


def table(grid: Grid, width: int = WIDTH) -> Iterator[str]:
    """Yield a row per collective; per framework a mark for each transport, and the numbers of cases and recordings.

    Frameworks that do not fit into the width follow below.
    """
    names = ("", *grid.collectives, "all")
    margin = max(map(len, names))
    blocks = [_framework(grid, framework) for framework in dict.fromkeys(name for name, _ in grid.columns)]
    while blocks:
        count = _fitting([len(block[0]) for block in blocks], width - margin)
        yield _row("", margin, (block[0] for block in blocks[:count]))
        for place, name in enumerate(names, 1):
            yield _row(name, margin, (block[place] for block in blocks[:count]))
        blocks = blocks[count:]
        if blocks:
            yield ""


def legend(grid: Grid, width: int = WIDTH) -> Iterator[str]:
    """Yield the meaning of the marks in the grid, and of the columns."""
    outcomes = {cell.outcome for cell in grid.cells.values()}
    words = WORDS | {DEVIATION: deviations(grid)}
    marked = [f"{MARKS[outcome]} {words[outcome]}" for outcome in reversed(OUTCOMES) if outcome in outcomes]
    if DEVIATION not in outcomes and total(grid, False)[DEVIATION]:
        marked.append(f"{MARKS[DEVIATION]} {words[DEVIATION]}, in cells with another mark")
    if len(grid.cells) < len(grid.collectives) * len(grid.columns):
        marked.append(f"{NOTHING} the framework lacks the collective")
    for line in marked:
        yield from wrap(line, width, subsequent_indent="  ")
    heads = [f"{name[0]} ranks are {name}" for name in dict.fromkeys(transport for _, transport in grid.columns)]
    heads += ["cases generated", "rec recorded calls replayed"]
    yield from wrap("; ".join(heads + ["mis functions missing"] * bool(missing(grid))), width)


def counts(grid: Grid) -> str:
    """Return the counts of a grid as text."""
    of_cases, of_recorded = total(grid, False), total(grid, True)
    replayed = f" and {number(of_recorded.total(), 'recorded call')}" if of_recorded else ""
    stale = f", {number(len(grid.stale), 'unexpected pass', 'es')}" if grid.stale else ""
    return (
        f"{number(of_cases.total(), 'case')}{replayed}:\n{counted(of_cases + of_recorded, len(missing(grid)))}{stale}"
    )


def counted(totals: Counter[str], missing: int) -> str:
    """Return the cases by outcome, and the number of missing functions, as text."""
    parts = [f"{totals[PASS]:,} agree", f"{totals[FAIL]:,} failed"]
    if totals[DEVIATION]:
        parts.append(number(totals[DEVIATION], "known deviation"))
    if totals[BEYOND]:
        parts.append(f"{totals[BEYOND]:,} unsupported upstream")
    return ", ".join([*parts, f"{number(missing, 'function')} missing"])


def total(grid: Grid, recorded: bool) -> Counter[str]:
    """Count all cases, or all recordings, by outcome."""
    return sum((cell.count(recorded) for cell in grid.cells.values()), Counter[str]())


def missing(grid: Grid) -> list[str]:
    """Return the dotted paths of the missing functions, without repetition."""
    return sorted(_lacking(grid.cells.values()))


def deviations(grid: Grid) -> str:
    """Return the owners of the known deviations, with the number of cases."""
    several = (result for function in grid.functions for result in (*function.cases, *function.recorded))
    owners = Counter(result.whose for result in several if result.outcome == DEVIATION and result.whose)
    of = ", ".join(f"{count:,} of {owner}" for owner, count in owners.most_common())
    return f"{WORDS[DEVIATION]}: {of}" if of else WORDS[DEVIATION]


def _missing_by_module(grid: Grid, width: int) -> Iterator[str]:
    for module, paths in groupby(missing(grid), lambda path: path.rpartition(".")[0]):
        names = ", ".join(path.rpartition(".")[2] for path in paths)
        yield from wrap(f"missing of {module}: {names}", width, subsequent_indent="    ")


def _framework(grid: Grid, framework: str) -> list[str]:
    """Return the framework's part of each line of the table: its name, the heads, the collectives and the sums."""
    rows = [_heads(grid, framework)]
    rows += [_block(grid, name, framework) for name in grid.collectives]
    rows.append(_sums(grid, framework))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    name = framework.center(sum(widths) + len(widths) - 1)
    return [name, *(_align(texts, widths) for texts in rows)]


def _fitting(widths: Sequence[int], width: int) -> int:
    """Return how many of the blocks fit side by side, at least 1."""
    totals = accumulate(len(_BETWEEN) + one for one in widths)
    return max(1, sum(total <= width for total in totals))


def _block(grid: Grid, collective: str, framework: str) -> list[str]:
    """Return a framework's cells in a row: a mark per transport, and the numbers of cases, recordings and missing."""
    transports = [transport for name, transport in grid.columns if name == framework]
    cells = [grid.cells.get((collective, framework, transport)) for transport in transports]
    return [*map(_mark, cells), *_numbers(grid, framework, [cell for cell in cells if cell])]


def _sums(grid: Grid, framework: str) -> list[str]:
    cells = [cell for cell in grid.cells.values() if cell.framework == framework]
    return [*("" for name, _ in grid.columns if name == framework), *_numbers(grid, framework, cells)]


def _numbers(grid: Grid, framework: str, cells: Sequence[Cell]) -> list[str]:
    numbers = [sum(cell.count(recorded).total() for cell in cells) for recorded in (False, True)]
    numbers += [len(_lacking(cells))] * _lacks(grid, framework)
    return [str(number) if number else "" for number in numbers]


def _heads(grid: Grid, framework: str) -> list[str]:
    transports = [transport[0] for name, transport in grid.columns if name == framework]
    return [*transports, "cases", "rec", *["mis"] * _lacks(grid, framework)]


def _lacks(grid: Grid, framework: str) -> bool:
    return any(cell.missing for cell in grid.cells.values() if cell.framework == framework)


def _lacking(cells: Iterable[Cell]) -> set[str]:
    """Return the dotted paths of the missing functions."""
    functions = (function for cell in cells for function in cell.functions.values() if function.missing)
    return {function.name.partition("[")[0] for function in functions}


def _mark(cell: Cell | None) -> str:
    return MARKS[cell.outcome] if cell else NOTHING


def _align(texts: Sequence[str], widths: Sequence[int]) -> str:
    """Align everything to the right of its column; marks and heads of transports are one character wide."""
    return " ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))


def _row(name: str, width: int, blocks: Iterable[str]) -> str:
    return _BETWEEN.join([name.ljust(width), *blocks]).rstrip()
