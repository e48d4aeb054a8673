"""The grid as lines of text, at most 100 columns wide for all five frameworks, and the text below it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from collshim.conformance.report.causes import Cause, causes
from collshim.conformance.report.results import BEYOND, DEVIATION, FAIL, MISSING, OUTCOMES, PASS, CaseResult, Cell, Grid

MARKS = {PASS: "✓", DEVIATION: "≈", BEYOND: "○", MISSING: "–", FAIL: "✗"}
NOTHING = "·"  # a framework has no such collective
WORDS = {
    PASS: "agrees",
    DEVIATION: "known deviation",
    BEYOND: "unsupported upstream: the real framework failed, collshim answers",
    MISSING: "every function is missing",
    FAIL: "differs",
}
_STYLES = {PASS: "green", DEVIATION: "yellow", BEYOND: "blue", MISSING: "dim", FAIL: "bold red"}
_SHOWN = 12  # causes of which one failure is shown in full; the JSON and the page have all
_CHARACTERS = 900  # of one failure
_BETWEEN = "  "
_WIDTH = 100


def show(grid: Grid) -> None:
    """Print the grid, in colour if rich is installed."""
    text = "\n".join(lines(grid))
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


def lines(grid: Grid) -> Iterator[str]:
    """Yield the grid, its legend, the missing functions, the failures, and one line of counts."""
    yield from table(grid)
    yield ""
    yield from legend(grid)
    yield from notes(grid)
    yield ""
    yield counts(grid)


def table(grid: Grid) -> Iterator[str]:
    """Yield a row per collective; per framework a mark for each transport, and the numbers of cases and recordings."""
    frameworks = list(dict.fromkeys(framework for framework, _ in grid.columns))
    rows = {"": [_heads(grid, framework) for framework in frameworks]}
    rows |= {name: [_block(grid, name, framework) for framework in frameworks] for name in grid.collectives}
    rows["all"] = [_sums(grid, framework) for framework in frameworks]
    widths = [
        [max(map(len, column)) for column in zip(*blocks, strict=True)] for blocks in zip(*rows.values(), strict=True)
    ]
    margin = max(map(len, rows))
    yield _row("", margin, map(_center, frameworks, widths))
    yield from (_row(name, margin, map(_align, blocks, widths)) for name, blocks in rows.items())


def legend(grid: Grid) -> Iterator[str]:
    """Yield the meaning of the marks in the grid, and of the columns."""
    outcomes = {cell.outcome for cell in grid.cells.values()}
    yield from (f"{MARKS[outcome]} {WORDS[outcome]}" for outcome in reversed(OUTCOMES) if outcome in outcomes)
    if len(grid.cells) < len(grid.collectives) * len(grid.columns):
        yield f"{NOTHING} the framework has no such collective"
    heads = [f"{name[0]} ranks are {name}" for name in dict.fromkeys(transport for _, transport in grid.columns)]
    heads += ["cases generated", "rec recorded calls replayed"]
    yield from wrap("; ".join(heads + ["mis functions missing"] * bool(missing(grid))), _WIDTH)


def notes(grid: Grid) -> Iterator[str]:
    """Yield the missing functions, unexpected passes, and one failure of each cause."""
    yield from _missing_by_module(grid)
    yield from failures(grid)


def failures(grid: Grid) -> Iterator[str]:
    """Yield unexpected passes, and one failure of each cause."""
    for line in grid.stale:
        yield f"unexpected pass: {line}"
    found = causes(grid)
    for cause in found[:_SHOWN]:
        function, result = cause.failures[0]
        yield f"failed: {_failure(function.name, result)}"
        yield from _others(cause)
    if len(found) > _SHOWN:
        yield f"... and {number(len(found) - _SHOWN, 'more cause')}, which --json and --html have"


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


def number(count: int, noun: str, plural: str = "s") -> str:
    """Return the count with its noun: "1 case", "1,665 cases"."""
    return f"{count:,} {noun}{'' if count == 1 else plural}"


def total(grid: Grid, recorded: bool) -> Counter[str]:
    """Count all cases, or all recordings, by outcome."""
    return sum((cell.count(recorded) for cell in grid.cells.values()), Counter[str]())


def missing(grid: Grid) -> list[str]:
    """Return the dotted paths of the missing functions, without repetition."""
    return sorted(_lacking(grid.cells.values()))


def _missing_by_module(grid: Grid) -> Iterator[str]:
    for module, paths in groupby(missing(grid), lambda path: path.rpartition(".")[0]):
        names = ", ".join(path.rpartition(".")[2] for path in paths)
        yield from wrap(f"missing of {module}: {names}", _WIDTH, subsequent_indent="    ")


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


def _center(framework: str, widths: Sequence[int]) -> str:
    return framework.center(sum(widths) + len(widths) - 1)


def _row(name: str, width: int, blocks: Iterable[str]) -> str:
    return _BETWEEN.join([name.ljust(width), *blocks]).rstrip()


def _others(cause: Cause) -> Iterator[str]:
    if len(cause.failures) > 1:
        text = f"  and {len(cause.failures) - 1:,} more for the same cause, of {', '.join(cause.functions)}"
        yield from wrap(text, _WIDTH, subsequent_indent="    ")


def _failure(function: str, result: CaseResult) -> str:
    """Format the function and the case, as ``--case`` and ``--xfails-file`` take them, and the differences."""
    why = result.why.partition("\nTraceback")[0].strip().replace("\n", "\n  ")
    text = f"{function}: {result.case}\n  {why}"
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]} ..."
