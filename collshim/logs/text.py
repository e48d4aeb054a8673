"""Shows the merged logs as a table for each group, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collshim.logs.merging import FAILED, UNFINISHED, Row
from collshim.logs.observer import duration, facts_of
from collshim.logs.reading import LoggedCall
from collshim.logs.verdict import Verdict, clock, number_of, ranges, titled

LAST = 20
"""The number of calls that are shown of each group."""

_BEFORE = 10
"""The number of calls shown before the first at which the ranks differ, if that is not among the last."""

_SINCE = {"waiting": "waiting since", "posted": "posted"}
_MOST_LINES, _MOST_GROUPS = 8, 4
_WIDTH_OF_CALL, _WIDTH_OF_RANK = 48, 15


def show(verdict: Verdict, console: Console, last: int | None = LAST) -> None:
    """Print the first sentence, the ranks' calls where they differ, and a table for each group."""
    _put(console, f"[bold]{escape(verdict.sentence)}[/bold]")
    if verdict.worst is not None and verdict.worst.mismatch:
        _show_calls(verdict.worst, console)
    shown_groups = _groups(verdict, last)
    for rows in shown_groups:
        group = rows[0].group
        ranks = f", ranks {ranges(sorted(group.ranks))} of the world" if group.name != "world" else ""
        shown = _shown(rows, verdict.worst, last)
        count = f"{number_of(len(rows), 'call')}{ranks}"
        rest = "" if len(shown) == len(rows) else f"; {len(shown)} shown, --all shows all"
        _put(console, f"\n[bold]{escape(group.name)}[/bold]  [dim]{escape(count + rest)}[/dim]")
        console.print(_table(shown, verdict, console.width))
    more = len(verdict.rows) - len(shown_groups)
    if more:
        _put(console, f"\n[dim]{number_of(more, 'more group')} without a problem; --all shows all[/dim]")
    _put(console, f"\n[dim]{escape(_footer(verdict))}[/dim]")


def _groups(verdict: Verdict, last: int | None) -> list[list[Row]]:
    """Return the rows of the groups to show: those with a problem, else the first few."""
    groups = list(verdict.rows.values())
    if last is None:
        return groups
    return [rows for rows in groups if any(row.problem for row in rows)] or groups[:_MOST_GROUPS]


def _put(console: Console, markup: str) -> None:
    console.print(markup, highlight=False)


def _show_calls(row: Row, console: Console) -> None:
    for rank in row.ranks[:_MOST_LINES]:
        _put(console, f"  rank {rank}: {escape(str(row.steps[rank].call))}")
    if len(row.ranks) > _MOST_LINES:
        _put(console, f"  and {len(row.ranks) - _MOST_LINES} more ranks: --json has their calls")


def _shown(rows: list[Row], marked: Row | None, last: int | None) -> list[Row]:
    """Return the last rows; or, if the marked one comes before these, the rows around it."""
    if last is None or len(rows) <= last:
        return rows
    start = len(rows) - last
    if marked is not None and marked in rows:
        start = min(start, max(0, rows.index(marked) - min(_BEFORE, last - 1)))
    return rows[start : start + last]


def _table(rows: list[Row], verdict: Verdict, width: int) -> Table:
    columns = _columns(rows, max(1, (width - _WIDTH_OF_CALL) // _WIDTH_OF_RANK))
    titles = [f"rank{'' if len(ranks) == 1 else 's'} {ranges(ranks)}" for ranks in columns]
    table = Table("", "", "call", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("bytes", justify="right")
    for title in ("line", *titles):
        table.add_column(title)
    for row in rows:
        is_marked = row is verdict.worst
        mark = "[red]>[/red]" if is_marked else ""
        cells = [_cell(row, ranks) for ranks in columns]
        table.add_row(mark, _number(row), *map(escape, _call(row)), *cells)
    return table


def _number(row: Row) -> str:
    return f"msg {row.number}" if row.is_message else str(row.number)


def _call(row: Row) -> tuple[str, str, str]:
    """Return the call, its bytes and its line; if the ranks disagree, each form of it."""
    steps = [row.steps[rank] for rank in row.ranks] if row.mismatch else [row.shown]
    calls = (str(step.call._replace(site="")).replace("(shape ", "(").replace(", op ", ", ") for step in steps)
    sizes = (str(step.nbytes or "") for step in steps)
    lines = (step.call.site for step in steps)
    texts = [" / ".join(dict.fromkeys(filter(None, each))) for each in (calls, sizes, lines)]
    return texts[0], texts[1], texts[2]


def _columns(rows: list[Row], most: int) -> list[list[int]]:
    """Return the ranks of each column: one, or if that is too wide those that did the same."""
    ranks = sorted({rank for row in rows for rank in row.ranks})
    if len(ranks) <= most:
        return [[rank] for rank in ranks]
    alike = dict[tuple[str, ...], list[int]]()
    for rank in ranks:
        alike.setdefault(tuple(_state(row, rank) for row in rows), []).append(rank)
    return list(alike.values())


def _state(row: Row, rank: int) -> str:
    step = row.steps.get(rank)
    if step is not None:
        return f"{step.state} {step.call.op}" if row.mismatch else step.state
    return "" if rank not in row.ranks else "no log" if rank in row.unlogged else "absent"


def _cell(row: Row, ranks: Sequence[int]) -> str:
    """Return what the ranks of a column, which did the same, did."""
    steps = [row.steps[rank] for rank in ranks if rank in row.steps]
    if not steps:
        state = _state(row, ranks[0])
        return "[red]absent[/red]" if state == "absent" else state
    text = _did(steps)
    return f"[red]{text}[/red]" if steps[0].state in (*UNFINISHED, *FAILED) else text


def _did(steps: list[LoggedCall]) -> str:
    state = steps[0].state
    if state in UNFINISHED:
        return f"{_SINCE[state]} {clock(min(step.time for step in steps))}"
    if state == "freed":
        return "needs no wait"
    times = sorted({step.seconds for step in steps if step.seconds is not None})
    if not times:
        return state
    return f"{state} {_between(times[0], times[-1]) if len(times) > 1 else duration(times[0])}"


def _between(least: float, most: float) -> str:
    return f"{least:.2g}-{most:.2g} s" if most >= 1 else f"{1e3 * least:.2g}-{1e3 * most:.2g} ms"


def _footer(verdict: Verdict) -> str:
    run = verdict.run
    missing = [rank for rank in range(run.size) if rank not in run.logged]
    texts = [f"Run {verdict.number} of {verdict.others + 1}: {' '.join(run.command)}, at {clock(run.start)}"]
    texts += [f"no log of ranks {ranges(missing)}"] if missing else []
    texts += ["--run N shows another"] if verdict.others else []
    return "; ".join(texts) + "."


def as_json(verdict: Verdict) -> str:
    """Return all calls of a run as JSON."""
    run = verdict.run
    facts = {
        "verdict": verdict.sentence,
        "code": verdict.code,
        "run": verdict.number,
        "runs": verdict.others + 1,
        "size": run.size,
        "command": list(run.command),
        "started": run.start,
        "no_log": [rank for rank in range(run.size) if rank not in run.logged],
        "groups": [_group(key, rows, verdict) for key, rows in verdict.rows.items()],
    }
    return json.dumps(facts, indent=2)


def _group(key: str, rows: list[Row], verdict: Verdict) -> dict[str, Any]:
    name, ranks = rows[0].group
    return {"key": key, "name": name, "ranks": ranks, "calls": [_row(row, row is verdict.worst) for row in rows]}


def _row(row: Row, is_first: bool) -> dict[str, Any]:
    return {
        "title": titled(row),
        "kind": row.first.kind,
        "number": row.number,
        "problem": row.problem,
        "mismatch": row.mismatch,
        "marked": is_first,
        "ranks": {str(rank): _of_rank(row, rank) for rank in row.ranks},
    }


def _of_rank(row: Row, rank: int) -> dict[str, Any]:
    step = row.steps.get(rank)
    if step is None:
        return {"state": _state(row, rank)}
    facts = {"state": step.state, "time": step.time, "seconds": step.seconds, "bytes": step.nbytes}
    return facts | {"error": step.error, "call": str(step.call), **facts_of(step.call)}
