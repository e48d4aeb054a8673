"""Shows a report as the verdict, a table and the line that causes a difference; or as JSON."""

from __future__ import annotations

import io
import json
import linecache
import os
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from collshim.invariance.check import Report, listed, ranks_text
from collshim.invariance.culprit import Culprit
from collshim.invariance.verdict import ONE, Comparison, Finding

_MOST_ROWS = 12


def show(report: Report, console: Console, *, everything: bool = False) -> None:
    """Print a report."""
    console.print(f"[bold]{escape(report.verdict())}[/bold]", highlight=False)
    if report.comparisons:
        console.print()
        console.print(_table(report, everything))
    for number, culprit in enumerate(report.culprits[:3]):
        console.print()
        _show_culprit(culprit, console, "Culprit" if number == 0 else "Also")
    console.print()
    for line in _footer(report):
        console.print(f"[dim]{escape(line)}[/dim]", highlight=False)


def as_text(report: Report) -> str:
    """Return a report as plain text."""
    text = io.StringIO()
    show(report, Console(file=text, width=120, color_system=None))
    return text.getvalue()


def _table(report: Report, everything: bool) -> Table:
    table = Table(
        "parameter", *(f"on {ranks_text(one.size)}" for one in report.comparisons), "", box=None, pad_edge=False
    )
    runs = [{finding.name: finding for finding in one.parameters} for one in report.comparisons]
    names = dict.fromkeys(name for run in runs for name in run)
    plain = [name for name in names if all(name in run and run[name].kind == ONE for run in runs)]
    shown = list(names) if everything else [name for name in names if name not in plain][:_MOST_ROWS]
    losses = [one.loss for one in report.comparisons]
    table.add_row("the loss", *map(_cell, losses), escape(losses[0].detail))
    for name in shown:
        row = [run[name] for run in runs if name in run]
        wrong = next((finding for finding in row if not finding.is_fine), row[0])
        table.add_row(escape(name), *(_cell(run[name]) if name in run else "" for run in runs), escape(wrong.detail))
    rest = [name for name in names if name not in shown]
    if rest:
        text = "1" if set(rest) <= set(plain) else "..."
        table.add_row(f"{len(rest)} more", *(text for _ in report.comparisons), "")
    return table


def _cell(finding: Finding) -> str:
    kind = escape("not judged" if finding.kind == "same update" and finding.name == "the loss" else finding.kind)
    return kind if finding.is_fine else f"[red]{kind}[/red]"


def _show_culprit(culprit: Culprit, console: Console, title: str) -> None:
    change = f"  ({culprit.change})" if culprit.change else ""
    console.print(
        f"[bold]{title}:[/bold] {escape(short(culprit.site))}  {escape(culprit.what)}{change}", highlight=False
    )
    path, _, line = culprit.site.rpartition(":")
    source = linecache.getline(path, int(line)).strip()
    if source:
        console.print(f"    {escape(source)}", highlight=False)
    for site in culprit.sites[1:3]:
        console.print(f"  [dim]called at {escape(short(site))}[/dim]", highlight=False)
    console.print(f"  {escape(culprit.why)}", highlight=False)
    console.print(f"  Fix: {escape(culprit.fix)}", highlight=False)
    if culprit.also:
        console.print(f"  See also {escape(', '.join(map(short, culprit.also)))}", highlight=False)
    if culprit.parameters:
        console.print(f"  It explains {escape(listed(culprit.parameters))}", highlight=False)


def short(site: str) -> str:
    """Return a ``path:line`` relative to the working directory, if the path is inside it."""
    path, _, line = site.rpartition(":")
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return f"{path if relative.startswith('..') else relative}:{line}"


def _footer(report: Report) -> list[str]:
    size = f"{report.tolerance.relative:.1e} of the norm ({report.dtype}, sums of {report.terms} terms)"
    text = f"Equal means: within {size}. W is the number of ranks."
    return [text, "; ".join(report.notes).capitalize() + f". {report.seconds:.1f} s."]


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    return json.dumps(_facts(report), indent=2)


def _facts(report: Report) -> dict[str, Any]:
    return {
        "target": report.target,
        "verdict": report.verdict(),
        "code": report.code,
        "trains": report.trains,
        "nondeterministic": report.nondeterministic,
        "not_finite": report.not_finite,
        "tolerance": report.tolerance.relative,
        "losses": report.losses,
        "runs": [_run(one) for one in report.comparisons],
        "failures": [{"ranks": failure.size, "error": failure.text} for failure in report.failures],
        "culprits": [_culprit(culprit) for culprit in report.culprits],
        "notes": report.notes,
        "seconds": round(report.seconds, 2),
    }


def _run(one: Comparison) -> dict[str, Any]:
    return {
        "ranks": one.size,
        "same": one.is_fine,
        "loss": _finding(one.loss),
        "parameters": [_finding(finding) for finding in one.parameters],
        "dropout": {sites[0]: text for sites, text in one.draws.items()},
    }


def _culprit(culprit: Culprit) -> dict[str, Any]:
    return {
        "line": culprit.site,
        "called_at": list(culprit.sites[1:]),
        "what": culprit.what,
        "why": culprit.why,
        "fix": culprit.fix,
        "types": culprit.change,
        "parameters": culprit.parameters,
        "see_also": culprit.also,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "kind": finding.kind,
        "factor": finding.factor,
        "fine": finding.is_fine,
        "ranks": finding.ranks,
        "detail": finding.detail,
    }
